package weightedtarget

import (
	"maps"
	"math"
	"slices"
	"time"
)

// Balance describes the zones between which calls are balanced (docs/near.md). Each zone gets a
// share of the calls that depends on the capacity in it that has not failed. These shares replace
// the configured weights.
type Balance struct {
	Zones []Zone
	Own   int // index of the client's zone, or -1 if it is not in Zones
}

// Zone is a zone that has children or callers.
type Zone struct {
	Callers float64
	// Capacities holds, for each child, the weight of its usable endpoints.
	Capacities map[string]float64
}

// Step limits how often shares are computed. They are computed again when a zone's share of the
// total capacity has changed by Step, has become 0, or is no longer 0.
const Step = 1. / 64

// ReserveRetention is how long a child without a share is kept. gRFC A56 keeps an unused priority
// equally long.
const ReserveRetention = 15 * time.Minute

const allCalls = 1 << 30

type balanced struct {
	*Balance
	parts   []float64         // each zone's share of the total capacity when calls were last balanced
	weights map[string]uint32 // weights of the children with a share; nil if no zone has capacity
}

// SetBalance sets the zones of the next update, or nil for none.
//
// A child without a share of the calls is a reserve. It is created when it first gets a share, and
// kept for ReserveRetention after it has lost its share. It receives calls only while no child with
// a share is READY.
func (c *Core) SetBalance(b *Balance) {
	c.balanced = balanced{Balance: b}
	if b != nil {
		c.share()
	}
}

// SetFailedPart records the failed share of a READY child's weight, from 0 to 1.
func (c *Core) SetFailedPart(name string, part float64) {
	if child, ok := c.children[name]; ok {
		child.failed = part
	}
}

// Rebalance computes the shares again if the capacity of a zone has changed enough (see Step). It
// is called after reports and updates.
func (c *Core) Rebalance() (actions []Action) {
	if c.balanced.Balance == nil || !c.moved() {
		return nil
	}
	c.share()
	c.stale = true
	for _, zone := range c.balanced.Zones {
		for _, name := range slices.Sorted(maps.Keys(zone.Capacities)) {
			if child, ok := c.children[name]; ok && !child.retained {
				actions = append(actions, c.setReserve(name)...)
			} else {
				actions = append(actions, c.configure(name)...)
			}
		}
	}
	return actions
}

// left returns how much of a child's capacity has not failed. A child that does not exist counts as
// intact.
func (c *Core) left(name string, capacity float64) float64 {
	switch child := c.children[name]; {
	case child == nil:
		return capacity
	case child.counts() == TransientFailure:
		return 0
	default:
		return capacity * (1 - child.failed)
	}
}

// capacity returns the capacity of each zone that has not failed, and a function that returns the
// same for a child. If all capacity has failed, both ignore failures.
func (c *Core) capacity() (zones []float64, left func(string, float64) float64) {
	sum := 0.0
	for _, left = range []func(string, float64) float64{c.left, func(_ string, all float64) float64 { return all }} {
		zones = make([]float64, len(c.balanced.Zones))
		for i, zone := range c.balanced.Zones {
			for _, name := range slices.Sorted(maps.Keys(zone.Capacities)) {
				zones[i] += left(name, zone.Capacities[name])
			}
			sum += zones[i]
		}
		if sum > 0 {
			break
		}
	}
	return zones, left
}

func (c *Core) moved() bool {
	zones, _ := c.capacity()
	for i, part := range sharesOf(zones) {
		if before := c.balanced.parts[i]; (part == 0) != (before == 0) || math.Abs(part-before) > Step-rounding {
			return true
		}
	}
	return false
}

func (c *Core) share() {
	b := &c.balanced
	zones, left := c.capacity()
	b.parts, b.weights = sharesOf(zones), nil
	callers := make([]float64, len(zones))
	for i := range zones {
		callers[i] = b.Zones[i].Callers
	}
	for i, share := range Shares(zones, callers, b.Own) {
		for name, capacity := range b.Zones[i].Capacities {
			if part := share * left(name, capacity); part > 0 {
				if b.weights == nil {
					b.weights = make(map[string]uint32)
				}
				b.weights[name] = weightOf(part / zones[i])
			}
		}
	}
}

func weightOf(part float64) uint32 { return uint32(max(1, math.Round(part*allCalls))) }

func (c *Core) isReserve(name string) bool {
	return c.balanced.weights != nil && c.balanced.weights[name] == 0
}

func (c *Core) setReserve(name string) []Action {
	child := c.children[name]
	switch reserve := c.isReserve(name); {
	case reserve == child.reserve:
		return nil
	case reserve:
		child.reserve = true
		return []Action{{Kind: Retain, Child: name, After: ReserveRetention}}
	}
	child.reserve = false
	return []Action{{Kind: Return, Child: name}}
}

// reserveEnded is called when the retention of a reserve is over. It destroys the reserve, with two
// exceptions. If a failed reserve were destroyed, its zone would seem to be intact and would get a
// share. And a reserve may be receiving calls, because no child with a share is READY.
func (c *Core) reserveEnded(name string) []Action {
	if child := c.children[name]; child.failed > 0 || child.counts() == TransientFailure || slices.Contains(c.In(Ready), name) {
		return []Action{{Kind: Retain, Child: name, After: ReserveRetention}}
	}
	delete(c.children, name)
	return []Action{{Kind: Destroy, Child: name}}
}

// Balanced reports whether calls are balanced between zones.
func (c *Core) Balanced() bool { return c.balanced.Balance != nil }

// Weight returns the weight of a child. This is given, the configured weight, if calls are not
// balanced between zones. The weight of a reserve is its share of all capacity.
func (c *Core) Weight(name string, given uint32) uint32 {
	if c.balanced.weights == nil {
		return given
	}
	if weight, ok := c.balanced.weights[name]; ok {
		return weight
	}
	zones, left := c.capacity()
	sum := 0.0
	for _, zone := range zones {
		sum += zone
	}
	for _, zone := range c.balanced.Zones {
		if capacity, ok := zone.Capacities[name]; ok {
			return weightOf(left(name, capacity) / sum)
		}
	}
	return 1
}

// IsReserve reports whether an existing child is a reserve (see SetBalance).
func (c *Core) IsReserve(name string) bool { return c.children[name].reserve }
