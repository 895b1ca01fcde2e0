package join

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	core "github.com/understudy-lb/understudy/internal/core/join"
	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// Resolver implements resolver.Resolver.
type Resolver struct {
	Join
	cc      resolver.ClientConn
	inUse   *stateattr.InUseChannel
	childOf map[string]core.ID
	logged  lastTexts

	// awaiting and serving are the user's service config with a loadBalancingConfig for the time
	// before and after the first answer. We parse each of them just once, since the policies get
	// their actual configuration as a value in the resolver state.
	policies          *topology.Policies
	awaiting, serving *serviceconfig.ParseResult
}

// Start starts the resolver of a channel. If the service config is invalid, no source is started.
func Start(cc resolver.ClientConn, config *Config) (*Resolver, error) {
	c := &Resolver{cc: cc, inUse: config.InUse.Channel(config.Target), logged: make(lastTexts)}
	c.config, c.Join.handle, c.onClose = config, c.handle, c.inUse.Close
	if err := lbconfig.CheckServiceConfig(config.ServiceConfig); err != nil {
		return nil, err
	}
	var err error
	if c.policies, err = topology.NewPolicies(config.Settings); err != nil {
		return nil, fmt.Errorf("service config: %w", err)
	}
	if c.serving = c.parse(`[{"understudy_priority":{}}]`); c.serving != nil && c.serving.Err != nil {
		return nil, fmt.Errorf("service config: %w", c.serving.Err)
	}
	return c, c.start()
}

func (c *Resolver) ResolveNow(resolver.ResolveNowOptions) {
	c.resolveNow.Enqueue(&c.events, func() { c.execute(c.core.ResolveNow()) })
}

func (c *Resolver) resolveNowFor(child string, ignored bool) {
	c.events.Enqueue(func() { c.execute(c.core.ResolveNowFor(c.childOf[child], ignored)) })
}

func (c *Resolver) handle(m core.Message) error {
	switch m.Kind {
	case core.Send:
		return c.send(slices.DeleteFunc(c.core.Statuses(), func(s core.Status) bool { return !s.IsInUse() }))
	// Note that ReportError needs a plain error. With a status error, wait-for-ready calls would
	// fail too.
	case core.Report:
		err := errors.New(c.line(m.Name, m.Text))
		c.cc.ReportError(err)
		c.inUse.Report(stateattr.PriorityInUse{Index: stateattr.NoPriority, Name: stateattr.NoName, State: connectivity.TransientFailure, Since: time.Now(), Why: err.Error()})
	case core.Await:
		if c.awaiting == nil {
			c.awaiting = c.parse(AwaitingConfig)
		}
		return c.cc.UpdateState(setAwaiting(resolver.State{ServiceConfig: c.awaiting}, c.line(m.Name, m.Text)))
	}
	return nil
}

func (c *Resolver) send(list []core.Status) error {
	info := &stateattr.Channel{Target: c.config.Target, Names: make(map[string]string), Services: make(map[string]string), Failures: make(map[string]string), Logger: c.config.Logger, InUse: c.inUse, MaxBackoff: c.config.Settings.MaxConnectBackoff, Live: c.live}
	c.childOf = make(map[string]core.ID)
	var trees []topology.Tree
	var empty []string
	for i := range list {
		m := &list[i]
		tree := c.refreshTree(c.sources[m.ID], m)
		c.logEndpointPolicy(m, &tree)
		trees = append(trees, tree)
		empty = append(empty, strings.TrimPrefix(m.Name+": ", ": ")+m.Explained(tree.Why))
		for n, p := range tree.Priorities {
			c.childOf[p.Child] = m.ID
			info.Names[p.Child] = priorityName(m.Name, n, p.Name)
			if p.Cluster != "" {
				info.Services[p.Child] = p.Cluster
			}
			switch {
			case m.Phase == core.Failed:
				info.Failures[p.Child] = c.line(m.Name, m.Failure.Text)
			case p.Why != "":
				info.Failures[p.Child] = c.line(m.Name, m.Explained(p.Why))
			}
		}
	}
	if len(c.childOf) == 0 {
		info.Empty = printable.Text(c.config.Target + ": " + strings.Join(empty, "; "))
	}
	update := c.policies.Combine(trees...)
	state := stateattr.SetConfig(resolver.State{Endpoints: update.Endpoints, ServiceConfig: c.serving}, update.Config())
	state = stateattr.SetChannel(stateattr.SetResolveNow(state, c.resolveNowFor), info)
	size := update.Size()
	logger.Infof("%s: %s: %s", c.config.Scheme, c.config.Target, size)
	c.live.Note("update: " + size)
	return c.cc.UpdateState(hierarchy.Seal(state))
}

func (c *Resolver) parse(policies string) *serviceconfig.ParseResult {
	merged, err := lbconfig.MergeServiceConfig(c.config.ServiceConfig, json.RawMessage(policies))
	if err != nil {
		return &serviceconfig.ParseResult{Err: err}
	}
	return c.cc.ParseServiceConfig(merged)
}

// We verify every endpoint's certificate against the mechanism's server name. A source only gets to
// choose that name if the user trusts it (TrustNames).
func (c *Resolver) refreshTree(s *source, m *core.Status) topology.Tree {
	content, _ := m.Answer.Content.(*topology.Checked)
	switch plainName := cmp.Or(s.translator.Name, "endpoints"); {
	case content == nil:
		s.tree = topology.Plain(plainName, s.entry.ServerName, nil)
	case content == s.content && m.Prefer == s.prefer:
	case content.Resolved != nil:
		s.tree = topology.Plain(plainName, s.entry.ServerName, content.Resolved)
		c.logPreference(s, " on endpoints without localities, such as those of DNS")
	default:
		settings := c.config.Settings
		settings.Prefer = cmp.Or(settings.Prefer, m.Prefer)
		s.translator.Near = settings.Near()
		s.tree = s.translator.Tree(content)
		if missing := s.translator.Near.MissingFields(content.Answer); missing != "" && content.Endpoints > 0 {
			c.logPreference(s, ": the source gives no "+missing+" for any endpoint")
		}
	}
	s.content, s.prefer = content, m.Prefer
	outliers, _ := m.Given.(*lbconfig.OutlierDetection)
	return s.tree.With(m.ResolveNow, outliers)
}

func (c *Resolver) logEndpointPolicy(m *core.Status, tree *topology.Tree) {
	policy := c.config.Settings.EndpointPolicy
	name, _ := policy.Split()
	if policy.IgnoresWeights() && tree.HasWeights() {
		c.warn(c.logged, "weights", m.Name, "the weights of endpoints have no effect with "+name)
	}
	if m.OutlierDetection != "" && c.policies.CannotEject {
		c.warn(c.logged, "outlier_detection", m.Name, "outlier_detection of the cluster has no effect with "+name)
	}
}

func (c *Resolver) logPreference(s *source, problem string) {
	if prefer := c.config.Settings.Prefer; prefer != "" && prefer != "none" {
		c.warn(s.logged, "prefer", s.name, "prefer="+prefer+" has no effect"+problem)
	}
}

func priorityName(mechanism string, n int, title string) string {
	if mechanism == "" && title == topology.NoLocality {
		return "" // we show the number of the priority instead
	}
	if title == topology.NoLocality || title == "" {
		title = fmt.Sprintf("priority %d", n)
	}
	if mechanism == "" || title == mechanism {
		return title
	}
	return mechanism + ": " + title
}
