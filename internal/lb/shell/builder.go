package shell

import (
	"encoding/json"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/serviceconfig"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/lb/serial"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// Spec describes a policy. C is its configuration, a type of package lbconfig.
type Spec[C any] struct {
	Name string
	// Default returns the configuration to use if an update doesn't have one. If Default is nil,
	// the update fails.
	Default func() *C
	New     func(*Shell) Policy[C]
}

func (spec Spec[C]) Builder(name string) balancer.Builder { return &builder[C]{name, spec} }

type builder[C any] struct {
	name string
	spec Spec[C]
}

func (b *builder[C]) Name() string { return b.name }

func (b *builder[C]) OwnsSubConns() {}

func (b *builder[C]) ParseConfig(raw json.RawMessage) (serviceconfig.LoadBalancingConfig, error) {
	config := new(C)
	if err := lbconfig.Parse(b.spec.Name, raw, config); err != nil {
		return nil, err
	}
	return any(config).(serviceconfig.LoadBalancingConfig), nil
}

func (b *builder[C]) Build(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	p := &lb[C]{defaultConfig: b.spec.Default}
	opts.Target.URL = printable.HideTarget(opts.Target.URL) // remove secrets, since the target ends up in logs and metrics
	p.ClientConn, p.Options, p.name = cc, opts, b.spec.Name
	p.parentInstance, _ = cc.(*Instance)
	p.policy = b.spec.New(&p.Shell)
	p.methods = p.policy
	p.scheduled, _ = p.policy.(Scheduled)
	p.settler, _ = p.policy.(Settler)
	p.serial.SetHooks(&serial.Hooks{Begin: p.begin, Flush: p.endBatch})
	return p
}

// PolicyOf returns what Spec.New created for balancer b, or nil if b wasn't built by a Spec. It's
// only for tests.
func PolicyOf(b balancer.Balancer) PolicyMethods {
	s, ok := b.(interface{ policyMethods() PolicyMethods })
	if !ok {
		return nil
	}
	return s.policyMethods()
}

func (s *Shell) policyMethods() PolicyMethods { return s.methods }
