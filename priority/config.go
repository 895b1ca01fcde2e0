package priority

import (
	"maps"
	"slices"
	"time"

	core "github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/lbconfig"
)

// coreConfig returns the part of the configuration that the core needs to know.
func coreConfig(c *lbconfig.Priority) core.Config {
	return core.Config{
		Children:              slices.Collect(maps.Keys(c.Children)),
		Priorities:            c.Priorities,
		FailoverTimeout:       time.Duration(c.FailoverTimeout),
		ChildRetention:        time.Duration(c.ChildRetention),
		RemovedChildRetention: time.Duration(c.RemovedChildRetention),
		FailbackDelay:         time.Duration(c.FailbackDelay),
	}
}
