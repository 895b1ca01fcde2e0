package weighted

// Scheduled adds up the picks of a policy's children over all of its pickers. It reads counts that
// the schedulers keep anyway, so picks don't get any slower. Only call its methods in events of the
// policy. The function that Now returns can be called at any time.
type Scheduled[C comparable] struct {
	previous  map[C]uint64
	picker    *Picker
	children  []C
	forgotten map[C]bool
}

// Use sets the current picker, which may be nil, and its children. We don't count later picks of
// the previous one.
func (s *Scheduled[C]) Use(picker *Picker, children []C) {
	if s.picker != nil {
		for i, n := range s.picker.Counts() {
			if s.forgotten[s.children[i]] {
				continue
			}
			if s.previous == nil {
				s.previous = make(map[C]uint64)
			}
			s.previous[s.children[i]] += n
		}
	}
	s.picker, s.children, s.forgotten = picker, children, nil
}

func (s *Scheduled[C]) Forget(child C) {
	delete(s.previous, child)
	if s.picker != nil {
		if s.forgotten == nil {
			s.forgotten = make(map[C]bool)
		}
		s.forgotten[child] = true
	}
}

// Now returns a function, which in turn returns the number of picks of each child at that time.
func (s *Scheduled[C]) Now(children []C) func() []uint64 {
	previous := make([]uint64, len(children))
	indexes := make(map[C]int, len(children))
	for i, c := range children {
		previous[i] = s.previous[c]
		indexes[c] = i
	}
	picker, resultIndex := s.picker, make([]int, len(s.children))
	for i, c := range s.children {
		resultIndex[i] = -1
		if index, ok := indexes[c]; ok {
			resultIndex[i] = index
		}
	}
	return func() []uint64 {
		sum := append([]uint64(nil), previous...)
		if picker != nil {
			for i, n := range picker.Counts() {
				if resultIndex[i] >= 0 {
					sum[resultIndex[i]] += n
				}
			}
		}
		return sum
	}
}
