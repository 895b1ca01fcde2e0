package names

import "slices"

// Lingering keeps values around when a few consecutive answers don't have them. Some DNS servers
// return only some of a name's addresses each time. Without this, we'd close perfectly good
// connections to the rest. A copy is independent of the original. Lingering is not safe for
// concurrent use.
type Lingering[K comparable, V any] struct{ items []item[K, V] }

type item[K comparable, V any] struct {
	key    K
	value  V
	misses int // consecutive answers that didn't have the value
}

// Next adds an answer and returns the current values. A value is dropped once maxMisses answers in
// a row don't contain it. The remaining values keep their order, and new ones are appended.
//
//	maxMisses 2:  a b  ->  a b
//	              c b  ->  a b c   first answer without a
//	              b c  ->  b c     second answer without a
func (s *Lingering[K, V]) Next(maxMisses int, answer []V, key func(V) K) []V {
	latest := make(map[K]V, len(answer))
	for _, v := range answer {
		if _, duplicate := latest[key(v)]; !duplicate {
			latest[key(v)] = v
		}
	}
	s.items = slices.Clone(s.items) // so that copies of s don't change
	for i := range s.items {
		it := &s.items[i]
		if v, ok := latest[it.key]; ok {
			it.value, it.misses = v, 0
			delete(latest, it.key)
		} else {
			it.misses++
		}
	}
	s.items = slices.DeleteFunc(s.items, func(it item[K, V]) bool { return it.misses >= maxMisses })
	for _, v := range answer {
		if _, isNew := latest[key(v)]; isNew {
			s.items = append(s.items, item[K, V]{key: key(v), value: v})
			delete(latest, key(v))
		}
	}
	return s.Values()
}

func (s *Lingering[K, V]) Values() []V {
	values := make([]V, len(s.items))
	for i, it := range s.items {
		values[i] = it.value
	}
	return values
}
