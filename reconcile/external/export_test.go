package external

// Remembered returns the number of objects in memory.
func (s *Step[T, S]) Remembered() int { return len(s.synced.byName) }
