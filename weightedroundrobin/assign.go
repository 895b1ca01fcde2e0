package weightedroundrobin

import (
	"math"

	"google.golang.org/grpc/resolver"
)

// assign finds or makes the child of each endpoint, sets the weights, and makes
// the order of the children that of the endpoints. It returns, by place in that
// order, which children have to be updated: those that are new, and those whose
// endpoint has changed in more than its weight.
func (p *policy) assign(endpoints []resolver.Endpoint) (changed []bool) {
	// A new slice: pickers hold the old one.
	p.order = make([]*child, 0, len(endpoints))
	changed = make([]bool, 0, len(endpoints))
	for _, endpoint := range endpoints {
		k, ok := keyOf(endpoint)
		if !ok {
			logOnce(&p.logged.empty, "an endpoint without an address is left out")
			continue
		}
		c, known := p.children[k]
		if !known {
			c = newChild(p)
			p.children[k] = c
		}
		if c.update == p.updates {
			logOnce(&p.logged.twice, "endpoint %q is given twice; its weights are added", k.addr)
			c.weight = addSaturating(c.weight, weightOf(endpoint))
			continue
		}
		changed = append(changed, !known || !sameButWeight(c.endpoint, endpoint))
		c.update = p.updates
		c.endpoint = endpoint
		c.weight = weightOf(endpoint)
		p.order = append(p.order, c)
	}
	return changed
}

// fitWeights scales the weights down where they sum past what a scheduler takes.
func (p *policy) fitWeights() {
	p.sum = 0
	for _, c := range p.order {
		p.sum += uint64(c.weight)
	}
	if p.sum <= math.MaxUint32 {
		return
	}
	logOnce(&p.logged.big, "the weights of %d endpoints sum to %d, past %d; they are scaled down", len(p.order), p.sum, uint32(math.MaxUint32))
	given := p.sum
	p.sum = 0
	for _, c := range p.order {
		c.weight = scaleDown(c.weight, given, len(p.order))
		p.sum += uint64(c.weight)
	}
}

// logOnce logs a warning, unless it did before, as said tells.
func logOnce(said *bool, format string, args ...any) {
	if *said {
		return
	}
	*said = true
	logger.Warningf("weighted_round_robin: "+format, args...)
}
