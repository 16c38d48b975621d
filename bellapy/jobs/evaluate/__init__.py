"""TODO evaluate"""
