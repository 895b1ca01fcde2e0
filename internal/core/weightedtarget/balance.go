package weightedtarget

import (
	"maps"
	"math"
	"slices"
	"time"
)

// Balance describes the zones between which calls are balanced (docs/near.md). Each zone gets a
// share of the calls, which depends on the zone's capacity without its failed endpoints. These
// shares replace the configured weights.
type Balance struct {
	Zones      []Zone
	ClientZone int // index of the client's zone, or -1 if it is not in Zones
}

// Zone is a zone that has children or callers.
type Zone struct {
	Callers float64
	// Capacities contains the weight of the usable endpoints of each child, by the child's name.
	Capacities map[string]float64
}

// Step is the change of a zone's share of the total capacity after which the shares of the calls
// are computed again. They are also computed again when a zone's share becomes 0 or is no longer 0.
const Step = 1. / 64

// ReserveRetention is how long a child without a share of the calls is kept. It is the time for
// which gRFC A56 keeps an unused priority.
const ReserveRetention = 15 * time.Minute

const allCalls = 1 << 30

type balanced struct {
	*Balance
	zoneShares []float64         // each zone's share of the total capacity when calls were last balanced
	weights    map[string]uint32 // weights of the children with a share; nil if no zone has capacity
}

// SetBalance sets the zones between which calls are balanced after the next update. If b is nil,
// the configured weights are used.
//
// A child without a share of the calls is a reserve. A child is not created before it gets a share,
// and is kept for ReserveRetention after it has lost its share. A reserve receives calls only while
// no child with a share is READY.
func (c *Core) SetBalance(b *Balance) {
	c.balanced = balanced{Balance: b}
	if b != nil {
		c.computeShares()
	}
}

// SetFailedShare records the failed share of a READY child's weight, from 0 to 1.
func (c *Core) SetFailedShare(name string, share float64) {
	if child, ok := c.children[name]; ok {
		child.failedShare = share
	}
}

// Rebalance computes the shares of the calls again if the capacity of a zone has changed enough
// (see Step). The policy calls it after each report and update.
func (c *Core) Rebalance() (actions []Action) {
	if c.balanced.Balance == nil || !c.capacityChanged() {
		return nil
	}
	c.computeShares()
	c.mustPublish = true
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

// remainingCapacity returns a child's capacity without its failed share. For a child that does not
// exist, this is the whole capacity.
func (c *Core) remainingCapacity(name string, capacity float64) float64 {
	switch child := c.children[name]; {
	case child == nil:
		return capacity
	case child.effectiveState() == TransientFailure:
		return 0
	default:
		return capacity * (1 - child.failedShare)
	}
}

// capacity returns the remaining capacity of each zone, and a function that returns the remaining
// capacity of a child. If no capacity remains in any zone, both results ignore failures.
func (c *Core) capacity() (zones []float64, remaining func(string, float64) float64) {
	sum := 0.0
	for _, remaining = range []func(string, float64) float64{c.remainingCapacity, func(_ string, all float64) float64 { return all }} {
		zones = make([]float64, len(c.balanced.Zones))
		for i, zone := range c.balanced.Zones {
			for _, name := range slices.Sorted(maps.Keys(zone.Capacities)) {
				zones[i] += remaining(name, zone.Capacities[name])
			}
			sum += zones[i]
		}
		if sum > 0 {
			break
		}
	}
	return zones, remaining
}

func (c *Core) capacityChanged() bool {
	zones, _ := c.capacity()
	for i, share := range sharesOf(zones) {
		if before := c.balanced.zoneShares[i]; (share == 0) != (before == 0) || math.Abs(share-before) > Step-rounding {
			return true
		}
	}
	return false
}

func (c *Core) computeShares() {
	b := &c.balanced
	zones, remaining := c.capacity()
	b.zoneShares, b.weights = sharesOf(zones), nil
	callers := make([]float64, len(zones))
	for i := range zones {
		callers[i] = b.Zones[i].Callers
	}
	for i, share := range Shares(zones, callers, b.ClientZone) {
		for name, capacity := range b.Zones[i].Capacities {
			if childShare := share * remaining(name, capacity); childShare > 0 {
				if b.weights == nil {
					b.weights = make(map[string]uint32)
				}
				b.weights[name] = weightOf(childShare / zones[i])
			}
		}
	}
}

func weightOf(share float64) uint32 { return uint32(max(1, math.Round(share*allCalls))) }

func (c *Core) isReserve(name string) bool {
	return c.balanced.weights != nil && c.balanced.weights[name] == 0
}

func (c *Core) setReserve(name string) []Action {
	child := c.children[name]
	switch isReserve := c.isReserve(name); {
	case isReserve == child.reserve:
		return nil
	case isReserve:
		child.reserve = true
		return []Action{{Kind: Retain, Child: name, After: ReserveRetention}}
	}
	child.reserve = false
	return []Action{{Kind: Return, Child: name}}
}

// reserveRetentionEnded is called when the retention time of a reserve is over. It destroys the
// reserve, with two exceptions. A failed reserve is kept, because its zone would otherwise seem to
// work and would get a share. A reserve that receives calls, because no child with a share is
// READY, is kept, too.
func (c *Core) reserveRetentionEnded(name string) []Action {
	if child := c.children[name]; child.failedShare > 0 || child.effectiveState() == TransientFailure || slices.Contains(c.In(Ready), name) {
		return []Action{{Kind: Retain, Child: name, After: ReserveRetention}}
	}
	delete(c.children, name)
	return []Action{{Kind: Destroy, Child: name}}
}

// Balanced reports whether calls are balanced between zones.
func (c *Core) Balanced() bool { return c.balanced.Balance != nil }

// Weight returns the weight of a child. If calls are not balanced between zones, this is its
// configured weight. The weight of a reserve is its share of the remaining capacity of all zones.
func (c *Core) Weight(name string, configured uint32) uint32 {
	if c.balanced.weights == nil {
		return configured
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
