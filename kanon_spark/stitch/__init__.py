"""What blocks cannot decide alone: trees and classes across their borders. See README.md."""
