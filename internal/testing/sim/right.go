package sim

// correctPriorities returns, in order, the indexes of the priorities that may be in use once
// everything has settled. According to gRFC A56, that's the highest priority with a reachable
// endpoint. If we can't be sure which endpoints are ejected, there may be several. If nothing is
// reachable, there are none. The caller holds the lock.
func (w *World) correctPriorities(truth EndpointSet) []int {
	if w.settings.overflow {
		return w.prioritiesThatMayTakeCalls(truth)
	}
	var all []int
	for i, tier := range truth {
		usableShare, reachableShare := w.settings.upShare(tier, w.certainlyUsable), w.settings.upShare(tier, w.reachable)
		if reachableShare > 0 {
			all = append(all, i)
		}
		if usableShare > 0 {
			return all
		}
	}
	return all
}

// reachable only asks whether the channel can connect, as that's all gRFC A56 cares about.
func (w *World) reachable(address string) bool { return w.conditions[address].reachable() }

func (w *World) certainlyUsable(address string) bool {
	c := w.conditions[address]
	if w.settings.overflow && !w.isWell(c) {
		return false
	}
	return c.reachable() && (!w.settings.detects || c.works() && !c.mayBeEjected())
}

func (s settings) upShare(t Tier, isUp func(address string) bool) float64 {
	// With pickFirst, one such endpoint is enough for the whole weight of its locality.
	upWeight, total := 0.0, 0.0
	for _, l := range t {
		if all := l.upWeight(func(string) bool { return true }); all > 0 {
			fraction := l.upWeight(isUp) / all
			if s.pickFirst && fraction > 0 {
				fraction = 1
			}
			upWeight += float64(l.Weight) * fraction
		}
		total += float64(l.Weight)
	}
	return upWeight / max(total, 1)
}
