package sim

import "math"

// share is a fraction of the calls. If there are several endpoints, one of them must get all of
// these calls.
type share struct {
	endpoints []string
	fraction  float64
}

func (s settings) shares(t Tier, isUp func(address string) bool) []share {
	var all []share
	byAddress := t.Shares(isUp)
	for _, l := range t {
		locality := share{}
		for _, e := range l.Endpoints {
			fraction, ok := byAddress[e.Address]
			switch {
			case !ok:
			case s.pickFirst:
				locality.endpoints, locality.fraction = append(locality.endpoints, e.Address), locality.fraction+fraction
			default:
				all = append(all, share{[]string{e.Address}, fraction})
			}
		}
		if len(locality.endpoints) > 0 {
			all = append(all, locality)
		}
	}
	return all
}

func (w *World) checkShares(q expectation, counts map[string]int) {
	for _, s := range q.shares {
		n, used := 0, 0
		for _, address := range s.endpoints {
			if n += counts[address]; counts[address] > 0 {
				used++
			}
		}
		if got := float64(n) / float64(q.calls); math.Abs(got-s.fraction) > 0.01 {
			w.Log.Break(ruleShares, "%v of p%d got %.1f %% of the calls, want %.1f %%", s.endpoints, q.priorities, 100*got, 100*s.fraction)
		}
		if used > 1 {
			w.Log.Break(ruleShares, "%d of %v got calls, but pick_first must choose one", used, s.endpoints)
		}
	}
}
