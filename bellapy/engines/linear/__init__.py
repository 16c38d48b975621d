"""TODO linear"""
