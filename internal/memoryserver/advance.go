package memoryserver

// Advance leaves out revisions and UIDs, so that the next ones are a given number's, unless that is
// already behind. What is then done first gets the same version and UID however much was done before,
// which makes runs comparable in which somebody stores these.
func (s *Server) Advance(revision int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.revision() < revision {
		s.history = append(s.history, nil)
	}
	s.issued = max(s.issued, uint64(max(revision, 0)))
}
