"""TODO compute"""
