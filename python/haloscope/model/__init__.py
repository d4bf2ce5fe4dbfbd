"""What exchanges and kernels cost: machine profiles, the laws fitted to measurements, and the predictions made of them."""
