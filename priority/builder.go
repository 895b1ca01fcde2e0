// Package priority is the policy understudy_priority: children in priority order,
// of which the calls go to the highest one that is READY (gRFC A56). Importing the
// package registers the policy.
//
// The decisions are in internal/core/priority; this package speaks gRPC's balancer API
// and keeps the timers.
package priority

import (
	"encoding/json"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/serviceconfig"

	core "github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/lbconfig"
)

// Name is the name that the policy is registered under when this package is
// imported.
const Name = "understudy_priority"

var logger = grpclog.Component("understudy")

func init() { balancer.Register(NewBuilder(Name)) }

// NewBuilder returns the builder of the policy under the given name. It is for
// understudy.RegisterSpecNames; everybody else uses Name, which is registered.
func NewBuilder(name string) balancer.Builder { return builder{name} }

type builder struct{ name string }

// Name returns the name the policy is registered under.
func (b builder) Name() string { return b.name }

// OwnsSubConns tells parents that a closed policy leaves no subchannel behind.
func (builder) OwnsSubConns() {}

// ParseConfig parses the policy's configuration (gRFC A56, "LB Policy
// Configuration", and this project's own fields):
//
//	{
//	  "children": {
//	    "name": {
//	      "config": [{"policy": {…}}],          // the first that is registered
//	      "ignoreReresolutionRequests": false   // of this child
//	    }
//	  },
//	  "priorities": ["name", …],        // of children, the highest first
//	  "failoverTimeout": "10s",         // to connect, before the next priority's turn
//	  "childRetention": "15m",          // of a child, once a higher one is in use
//	  "removedChildRetention": "15m",   // of a child, once it is not configured
//	  "failbackDelay": "0s"             // READY, before taking over from a lower one
//	}
//
// The durations shown are the defaults; all may be "0s" but failoverTimeout. Fields
// that are not known are ignored.
//
// Accepted are a child that no priority names (it is not created; one that exists
// already is updated and kept) and no priorities at all (calls fail with an error
// that says so). Errors, which name the field, are a child without a policy, with
// none that is registered or with one that rejects its configuration; an empty
// name; a priority that names no child; and a name that is twice in priorities.
func (builder) ParseConfig(raw json.RawMessage) (serviceconfig.LoadBalancingConfig, error) {
	c := &lbconfig.Priority{}
	if err := lbconfig.Parse("priority", raw, c); err != nil {
		return nil, err
	}
	return c, nil
}

// Build returns a policy without children.
func (builder) Build(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	return &policy{
		cc:       cc,
		opts:     opts,
		core:     core.New(),
		children: make(map[string]*child),
	}
}
