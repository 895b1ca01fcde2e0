package share

func (s *Share) Methods() int { return len(s.methods.table) }
