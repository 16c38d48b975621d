"""What runs on GPUs of the files beside this folder; CONTRIBUTING tells how they are named."""
