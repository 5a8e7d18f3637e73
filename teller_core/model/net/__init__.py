"""The network itself. Everything here loads torch, and is imported only when a model is trained or asked."""
