"""Containers: started through a container runtime (Docker, Podman), followed, and ended."""
