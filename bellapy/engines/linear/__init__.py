"""X-drop extension with linear gap costs: one rule, on CPU lanes and GPU registers, score only and traced."""
