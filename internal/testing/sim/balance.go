package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// chooseBalance sets prefer=balance. It turns off the options that change the shares of zones in
// other ways.
func (s *settings) chooseBalance(r *rand.Rand) {
	s.near.least = 0
	s.minReady, s.recovery, s.detects, s.pickFirst = 0, 0, "false", false
	if r.IntN(2) == 0 {
		return
	}
	s.near.callers = make(map[string]int)
	for zone := range strings.SplitSeq("a b c d e f", " ") {
		if n := r.IntN(4); n > 0 {
			s.near.callers[zone] = n
		}
	}
	if len(s.near.callers) == 0 {
		s.near.callers = nil
	}
}

// balances reports whether prefer=balance applies to a priority. The client must know its zone, and
// the priority must have usable endpoints.
func (n nearby) balances(t Tier) bool {
	return n.prefer == "balance" && n.zone != "" && len(t.Serving()) > 0 && t[0].Zone != ""
}

// balance splits a priority of the source in two: one with all zones, and one with the zones that
// get no calls. The weights of zones do not matter.
func (n nearby) balance(t Tier) Truth {
	if !n.balances(t) {
		return Truth{t}
	}
	shares := n.zoneShares(t, func(l Locality) float64 { return l.load(func(string) bool { return true }) })
	all, rest := slices.Clone(t), Tier{}
	for i := range all {
		all[i].Weight = 1
		if shares[all[i].Zone] == 0 {
			rest = append(rest, all[i])
		}
	}
	if len(rest) == 0 {
		return Truth{all}
	}
	return Truth{all, rest}
}

// own reports whether a zone is the client's. The zone may come with or without its region.
func (n nearby) own(zone string) bool {
	region, name := placeOf(zone)
	return name == n.zone && (n.region == "" || region == "" || n.region == region)
}

func (n nearby) callersIn(l Locality) float64 {
	if n.callers == nil && n.listed {
		return 1
	} else if n.callers == nil {
		return min(1, float64(len(l.Endpoints)))
	}
	return float64(n.callers[l.Zone[strings.LastIndex(l.Zone, "/")+1:]])
}

// zoneShares returns each zone's share of the calls by the formula in docs/near.md. left returns
// the remaining capacity of a zone.
func (n nearby) zoneShares(t Tier, left func(Locality) float64) map[string]float64 {
	var capacity, callers float64
	for _, l := range t {
		capacity += left(l)
		callers += n.callersIn(l)
	}
	if n.callers != nil { // callers in zones without endpoints count, too
		callers = 0
		named := func(zone string) bool {
			return slices.ContainsFunc(t, func(l Locality) bool { return l.Zone == zone || strings.HasSuffix(l.Zone, "/"+zone) })
		}
		for zone, number := range n.callers {
			if !named(zone) {
				callers += float64(number)
			}
		}
		for _, l := range t {
			callers += n.callersIn(l)
		}
	}
	u := func(l Locality) float64 { return left(l) / max(capacity, 1e-9) }
	c := func(l Locality) float64 { return n.callersIn(l) / max(callers, 1e-9) }
	shares, stays, over := make(map[string]float64), 0.0, 0.0
	for _, l := range t {
		if n.own(l.Zone) && u(l) > 0 && c(l) > 0 {
			stays = min(1, u(l)/c(l))
			shares[l.Zone] = stays
		}
		over += max(0, u(l)-c(l))
	}
	if stays > 1-1e-9 {
		return shares
	}
	for _, l := range t {
		part := u(l)
		if over > 1e-9 {
			part = max(0, u(l)-c(l)) / over
		}
		if part > 1e-9 {
			shares[l.Zone] += (1 - stays) * part
		}
	}
	return shares
}

// balanced returns all distributions that are correct. The channel does not connect to a zone that
// gets no calls, so it may take unreachable endpoints there for usable.
//
// A zone without endpoints in the channel's update may have draining ones in the source. Such a
// zone may or may not have callers.
func (n nearby) balanced(t Tier, up func(string) bool) (all []map[string]float64) {
	if n.callers == nil && !n.listed && slices.ContainsFunc(t, func(l Locality) bool { return len(l.Endpoints) == 0 }) {
		listed := n
		listed.listed = true
		all = listed.balanced(t, up)
	}
	whole := func(l Locality) float64 { return l.load(func(string) bool { return true }) }
	for well := range 1 << len(t) {
		left := func(l Locality) float64 {
			i := slices.IndexFunc(t, func(o Locality) bool { return o.Zone == l.Zone })
			if well>>i&1 == 1 {
				return whole(l)
			}
			return l.load(up)
		}
		shares, possible, one := n.zoneShares(t, left), true, make(map[string]float64)
		for _, l := range t {
			if part := shares[l.Zone]; part > 0 {
				possible = possible && left(l) == l.load(up)
				for _, e := range l.Endpoints {
					if !e.Draining && up(e.Address) {
						one[e.Address] = part * float64(e.Weight) / l.load(up)
					}
				}
			}
		}
		if possible {
			all = append(all, one)
		}
	}
	return all
}

// slack returns how much the shares may deviate. They change in steps of 1/64 of the total
// capacity.
func (n nearby) slack(t Tier) float64 {
	callers, own := 0.0, 0.0
	for _, l := range t {
		callers += n.callersIn(l)
		if n.own(l.Zone) {
			own = n.callersIn(l)
		}
	}
	for _, number := range n.callers {
		callers += float64(number) // an upper bound: callers in zones of the priority count twice
	}
	if own == 0 {
		return 0.01 + 2./64
	}
	return 0.01 + callers/own/64
}

func (w *World) checkBalance(q quiet, counts map[string]int) {
	if len(q.balanced) == 0 {
		return
	}
	fits := func(shares map[string]float64) bool {
		for _, address := range q.endpoints {
			if math.Abs(float64(counts[address])/float64(q.calls)-shares[address]) > q.slack {
				return false
			}
		}
		return true
	}
	if !slices.ContainsFunc(q.balanced, fits) {
		w.Log.Break(ruleShares, "of %d calls p%d got %v, want shares such as %v", q.calls, q.right, counts, fmt.Sprint(q.balanced))
	}
}

// zonesLine checks the log line about callers in zones without endpoints.
func (w *World) zonesLine([]string) string {
	if w.settings.near.callers == nil {
		return "zoneCallers is not set"
	}
	return ""
}
