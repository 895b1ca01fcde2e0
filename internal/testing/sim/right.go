package sim

import "slices"

// right returns the priorities that may be in use after the world has settled, in order. In A56,
// the highest reachable priority is in use. Several priorities are possible if a priority is
// between its mark and its recovery mark, or if calls to some endpoints fail and these endpoints
// may or may not be ejected. If no endpoint is reachable, the result is empty. The caller must hold
// the lock.
func (w *World) right(truth Truth) []int {
	var some, all []int
	detects := false
	for i, tier := range truth {
		good, there := w.settings.part(tier, w.answers), w.settings.part(tier, w.connects)
		detects = detects || tier.detection().ejects()
		if there == 0 {
			continue
		}
		all = append(all, i)
		tried := tier.detection().ejects() && good < there // a few of the calls try the other endpoints
		if there >= w.settings.minReady || tried {
			some = append(some, i)
		}
		if good > 0 && good >= max(w.settings.minReady, w.settings.recovery) {
			return some
		}
	}
	switch {
	case w.settings.minReady == 0 && !detects || len(all) == 0:
		return some
	case !detects && len(some) == 0:
		return all[:1] // all priorities are too small, so the highest is used
	}
	return all
}

// connects reports whether an endpoint is reachable, which is all that A56 sees.
func (w *World) connects(address string) bool { return w.conditions[address].connects() }

// answers reports whether an endpoint is reachable and cannot be ejected. Only outlier detection
// sees the difference.
func (w *World) answers(address string) bool {
	c := w.conditions[address]
	for _, tier := range w.known {
		if d := tier.detection(); d.ejects() && slices.Contains(tier.Serving(), address) && (!c.works() || c.suspect(d)) {
			return false
		}
	}
	return c.connects()
}

// part returns the share of a priority's weight that belongs to endpoints that are up. With
// pickFirst, one endpoint gets all calls of a locality, so the locality counts either completely or
// not at all.
func (s settings) part(t Tier, up func(address string) bool) float64 {
	part, whole := 0.0, 0.0
	for _, l := range t {
		if all := l.load(func(string) bool { return true }); all > 0 {
			held := l.load(up) / all
			if s.pickFirst && held > 0 {
				held = 1
			}
			part += float64(l.Weight) * held
		}
		whole += float64(l.Weight)
	}
	return part / max(whole, 1)
}
