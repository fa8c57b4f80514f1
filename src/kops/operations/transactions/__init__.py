"""Transactions: of transactional ids, and those open in partitions; ending the ones that no coordinator ends."""
