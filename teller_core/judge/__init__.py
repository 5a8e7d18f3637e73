"""What is abnormal, and why."""
