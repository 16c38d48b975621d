"""TODO overlap"""
