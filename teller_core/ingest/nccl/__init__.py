"""What NCCL and torch's flight recorder say of collectives."""
