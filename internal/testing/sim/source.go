package sim

import (
	"math/rand/v2"
	"net"
	"strconv"
	"time"

	"github.com/understudy-lb/understudy/internal/testing/given"
)

// Source is where a channel of the world learns its endpoints from.
type Source interface {
	// Target returns what the channel is made with.
	Target() string
	// Options returns those that the source needs. It is called once.
	Options() []given.Option
	// Sees returns what the source can tell of truth.
	Sees(truth Truth) Truth
	// Publish makes truth known, or does so once the source works again. It returns at
	// once.
	Publish(truth Truth)
	// Fail makes the source fail until Restore, in a way that is drawn, and says how.
	Fail(r *rand.Rand) string
	// Restore ends Fail. What was published last is known again.
	Restore()
	// Lag is how long after Publish, while the source works, a channel may take to know.
	Lag() time.Duration
	// Recovery is how long after Restore a channel may take to know.
	Recovery() time.Duration
	// Fixed says whether a priority keeps its place, though it has no endpoints.
	Fixed() bool
	// Close frees what the source has. The channel is closed by then.
	Close()
}

// newSource returns a source of the kind.
func (w *World) newSource(kind string, config Config) Source {
	if kind == "mixed" {
		return newMixed(w, config)
	}
	return w.newLeaf(kind, w.truth, 0, config)
}

// newLeaf returns a source of the kind that has a part of the truth, from the given
// priority on.
func (w *World) newLeaf(kind string, truth Truth, first int, config Config) Source {
	switch kind {
	case "eds":
		return newEDS(w, truth)
	case "file":
		return newFile(w, truth, config.Dir)
	case "srv":
		return newRecords(w.rand, truth)
	case "kubernetes":
		return newKube(w, truth)
	case "dns":
		return newHosts(w, truth, first)
	}
	return newNames(truth, first)
}

// kinds are the sources that the seed draws from.
var kinds = []string{"failover", "dns", "eds", "eds", "file", "srv", "kubernetes", "mixed", "mixed", "mixed"}

// split returns the host and the port of an address.
func split(address string) (string, uint32) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		panic(err) // addresses are those of the world
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		panic(err)
	}
	return host, uint32(port)
}
