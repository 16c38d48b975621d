"""TODO gpu"""
