"""What to request next time, learned from the stored runs of a job and from its inputs."""
