package sim

import "slices"

// newTruth returns random endpoints: two or three priorities with one or two localities each. With
// prefer=balance, the first priority has three localities. All addresses differ.
func (w *World) newTruth() Truth {
	pool := slices.Clone(w.addresses)
	w.rand.Shuffle(len(pool), func(i, j int) { pool[i], pool[j] = pool[j], pool[i] })
	take := func(n int) []string {
		n = min(n, len(pool))
		taken := pool[:n]
		pool = pool[n:]
		return taken
	}
	truth := make(Truth, 2+w.rand.IntN(2))
	for i := range truth {
		zones := 1 + w.rand.IntN(2)
		if w.settings.near.prefer == "balance" && i == 0 {
			zones = 3
		}
		for n := range zones {
			l := Locality{Zone: string(rune('a' + w.rand.IntN(6))), Weight: uint32(1 + w.rand.IntN(4))}
			if w.settings.near.prefer != "" && n == 0 && w.rand.IntN(2) == 0 {
				l.Zone = w.settings.near.zone
			}
			if slices.ContainsFunc(truth[i], func(o Locality) bool { return o.Zone == l.Zone }) {
				continue
			}
			for _, address := range take(1 + w.rand.IntN(2)) {
				l.Endpoints = append(l.Endpoints, Endpoint{Address: address, Weight: uint32(1 + w.rand.IntN(4))})
			}
			truth[i] = append(truth[i], l)
		}
	}
	return truth
}

// changed returns the current endpoints with a small random change.
func (w *World) changed() Truth {
	w.mu.Lock()
	truth := w.truth.Clone()
	w.mu.Unlock()
	tier := w.rand.IntN(len(truth))
	locality := &truth[tier][w.rand.IntN(len(truth[tier]))]
	switch w.rand.IntN(5) {
	case 0: // weights
		locality.Weight = uint32(1 + w.rand.IntN(4))
		for i := range locality.Endpoints {
			locality.Endpoints[i].Weight = uint32(1 + w.rand.IntN(4))
		}
	case 1: // drain
		for i := range locality.Endpoints {
			locality.Endpoints[i].Draining = w.rand.IntN(2) == 0
		}
	case 2: // stop draining everywhere
		for _, tier := range truth {
			for _, l := range tier {
				for i := range l.Endpoints {
					l.Endpoints[i].Draining = false
				}
			}
		}
	case 3: // two priorities change places
		other := w.rand.IntN(len(truth))
		truth[tier], truth[other] = truth[other], truth[tier]
	case 4: // a new endpoint
		if free := w.free(truth); free != "" {
			locality.Endpoints = append(locality.Endpoints, Endpoint{Address: free, Weight: 1})
		}
	}
	return truth
}

// free returns an address that is not in truth, or "" if there is none.
func (w *World) free(truth Truth) string {
	for _, address := range w.addresses {
		used := false
		for _, tier := range truth {
			for _, l := range tier {
				used = used || slices.ContainsFunc(l.Endpoints, func(e Endpoint) bool { return e.Address == address })
			}
		}
		if !used {
			return address
		}
	}
	return ""
}
