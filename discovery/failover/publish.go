package failover

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/understudy-lb/understudy/hierarchy"
	"github.com/understudy-lb/understudy/internal/svcconfig"
	"github.com/understudy-lb/understudy/topology"
)

// nobody stands for a part where there is none to tell of an error.
const nobody = -1

// message is what the channel is told at once.
type message struct {
	action action
	listed []topology.Part // for send and both
	err    error           // for report and both
}

// publish tells the channel what changed. Where another goroutine is at it, that
// one sends this too, and publish returns at once; so answers that arrive while the
// channel takes one become one update. It returns the channel's error where the
// resolver of part caller should try again.
func (r *multiResolver) publish(caller int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.publishing || !r.started {
		return nil
	}
	r.publishing = true
	var verdict error
	for r.changed && !r.closed {
		r.changed = false
		m := r.message()
		r.mu.Unlock()
		err := r.deliver(m)
		r.mu.Lock()
		verdict = r.settle(caller, err)
	}
	r.publishing = false
	return verdict
}

// message returns what to tell the channel now. The lock is held.
func (r *multiResolver) message() message {
	m := message{action: r.progress.next()}
	if m.action == send || m.action == both {
		r.progress.sent = true
		for i, phase := range r.progress.phases {
			if phase != outstanding {
				m.listed = append(m.listed, topology.Part{Name: r.parts[i].name, Endpoints: r.words[i].endpoints})
			}
		}
	}
	if m.action == report || m.action == both {
		m.err = r.whyNone()
	}
	return m
}

// deliver calls the channel. The lock is not held.
func (r *multiResolver) deliver(m message) error {
	var err error
	if m.action == send || m.action == both {
		tree := topology.Targets(m.listed)
		state := resolver.State{Endpoints: tree.Endpoints, ServiceConfig: r.parse(tree)}
		err = r.cc.UpdateState(hierarchy.Seal(hierarchy.SetResolveNow(state, r.resolveChild)))
	}
	if m.action == report || m.action == both {
		r.cc.ReportError(m.err)
	}
	return err
}

// settle takes note of err, the channel's to an update, and returns it where the
// resolver of part caller should try again. The resolvers of other parts cannot be
// told, since their answers were taken earlier: they are asked to resolve again,
// once until an update succeeds. Where a part without addresses explains the error,
// only its resolver can help, and that knows already. The lock is held.
func (r *multiResolver) settle(caller int, err error) error {
	if err == nil {
		for i := range r.words {
			r.words[i].told = false
		}
		return nil
	}
	for _, phase := range r.progress.phases {
		if phase == failed {
			return nil
		}
	}
	logger.Warningf("failover: the channel did not take an update: %v", err)
	for i, phase := range r.progress.phases {
		if phase == answered && i != caller && !r.words[i].told {
			r.ask(i)
		}
		r.words[i].told = true
	}
	return err
}

// parse returns the service config that the channel is sent with tree.
func (r *multiResolver) parse(tree topology.Tree) *serviceconfig.ParseResult {
	config, err := svcconfig.Merge(r.serviceConfig, tree.Config)
	if err != nil {
		return &serviceconfig.ParseResult{Err: err}
	}
	return r.cc.ParseServiceConfig(config)
}

// checkServiceConfig returns an error where no update could be taken, because of a
// mistake in the user's service config.
func (r *multiResolver) checkServiceConfig() error {
	if err := svcconfig.Check(r.serviceConfig); err != nil {
		return fmt.Errorf("failover: %w", err)
	}
	all := make([]topology.Part, 0, len(r.parts))
	for _, p := range r.parts {
		all = append(all, topology.Part{Name: p.name})
	}
	if parsed := r.parse(topology.Targets(all)); parsed != nil && parsed.Err != nil {
		return fmt.Errorf("failover: service config: %v", parsed.Err) // a status in it would end waiting calls
	}
	return nil
}

// whyNone returns an error that says, in a line, why no part has an address.
func (r *multiResolver) whyNone() error {
	const most = 4 // causes that are worth reading
	var causes []string
	for i, word := range r.words {
		switch {
		case i >= most:
		case word.err != nil:
			causes = append(causes, fmt.Sprintf("%s: %v", r.parts[i].name, word.err))
		default:
			causes = append(causes, fmt.Sprintf("%s: no answer yet", r.parts[i].name))
		}
	}
	text := "failover: no part has an address: " + strings.Join(causes, "; ")
	if more := len(r.words) - most; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return errors.New(text)
}
