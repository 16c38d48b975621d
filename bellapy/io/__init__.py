"""TODO io"""
