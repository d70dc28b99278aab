"""Array-encoded generalization trees and their builders."""
