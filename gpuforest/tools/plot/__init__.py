"""Pictures of trees and forests, by matplotlib, which is imported when the first is drawn."""
