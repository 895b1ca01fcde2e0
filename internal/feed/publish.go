package feed

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/understudy-lb/understudy/hierarchy"
	"github.com/understudy-lb/understudy/internal/svcconfig"
	"github.com/understudy-lb/understudy/topology"
)

// nobody stands for a mechanism where there is none to tell of an error.
const nobody = -1

// message is what the channel is told at once.
type message struct {
	action action
	trees  []topology.Tree    // for send
	about  *hierarchy.Channel // likewise
	err    error              // for report
}

// publish tells the channel what changed. Where another goroutine is at it, that
// one sends this too, and publish returns at once; so answers that arrive while the
// channel takes one become one update. It returns the channel's error where source
// caller should try again.
func (f *Feed) publish(caller int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.publishing || !f.started {
		return nil
	}
	f.publishing = true
	var verdict error
	for f.changed && !f.closed {
		f.changed = false
		m := f.message()
		f.mu.Unlock()
		err := f.deliver(m)
		f.mu.Lock()
		verdict = f.settle(caller, err)
	}
	f.publishing = false
	return verdict
}

// message returns what to tell the channel now. The lock is held.
func (f *Feed) message() message {
	m := message{action: f.progress.next()}
	switch m.action {
	case send:
		f.progress.sent = true
		f.list(&m)
	case report:
		m.err = f.whyNone()
	case wait:
	}
	return m
}

// list puts the priorities of those mechanisms into m that have answered or failed.
func (f *Feed) list(m *message) {
	f.children = make(map[string]int)
	var empty []string // why the trees have no priorities, if none has
	m.about = &hierarchy.Channel{Target: f.config.Target, Names: make(map[string]string), Failures: make(map[string]string)}
	for i, phase := range f.progress.phases {
		if phase == outstanding {
			continue
		}
		tree := f.words[i].tree
		if f.resolves(i) {
			tree = tree.Reresolving()
		}
		m.trees = append(m.trees, tree)
		if name := f.config.Mechanisms[i].Name; name != "" {
			empty = append(empty, name+": "+tree.Empty)
		} else {
			empty = append(empty, tree.Empty)
		}
		for n, p := range tree.Priorities() {
			f.children[p.Child] = i
			m.about.Names[p.Child] = f.nameOf(i, n, p.Name)
			if phase == failed {
				m.about.Failures[p.Child] = f.line(i, f.words[i].err.Error())
			}
		}
	}
	if len(f.children) == 0 {
		m.about.Empty = f.config.Target + ": " + strings.Join(empty, "; ")
	}
}

// nameOf returns what people call priority n of mechanism i, which the source calls
// title.
func (f *Feed) nameOf(i, n int, title string) string {
	mechanism := f.config.Mechanisms[i].Name
	if title == topology.LocalityName(nil) || title == "" {
		title = fmt.Sprintf("priority %d", n)
	}
	if mechanism == "" || title == mechanism {
		return title
	}
	return mechanism + ": " + title
}

// deliver calls the channel. The lock is not held.
func (f *Feed) deliver(m message) error {
	switch m.action {
	case send:
		tree := topology.Join(f.config.Settings, m.trees...)
		state := resolver.State{Endpoints: tree.Endpoints, ServiceConfig: f.parse(tree)}
		state = hierarchy.SetChannel(hierarchy.SetResolveNow(state, f.resolveChild), m.about)
		logger.Infof("%s: %s: %d endpoints in %d priorities", f.config.Scheme, f.config.Target, len(tree.Endpoints), len(m.about.Names))
		return f.cc.UpdateState(hierarchy.Seal(state))
	case report:
		f.cc.ReportError(m.err)
	case wait:
	}
	return nil
}

// settle takes note of err, the channel's to an update, and returns it where source
// caller should try again. The other sources cannot be told, since their answers were
// taken earlier: they are asked to look again, once until an update succeeds. Where a
// mechanism without addresses explains the error, only its source can help, and that
// knows already. The lock is held.
func (f *Feed) settle(caller int, err error) error {
	f.refused = false
	if err == nil {
		for i := range f.words {
			f.words[i].told = false
		}
		return nil
	}
	for _, phase := range f.progress.phases {
		if phase == failed {
			return nil
		}
	}
	f.refused = true
	// A priority without endpoints is no refusal of the rest; policies say so themselves.
	if !errors.Is(err, balancer.ErrBadResolverState) {
		logger.Warningf("%s: %s: the channel does not take the endpoints: %v", f.config.Scheme, f.config.Target, err)
	}
	for i, phase := range f.progress.phases {
		if phase == answered && i != caller && !f.words[i].told {
			f.ask(i)
		}
		f.words[i].told = true
	}
	return err
}

// parse returns the service config that the channel is sent with tree. It is parsed
// anew only if it changes.
func (f *Feed) parse(tree topology.Tree) *serviceconfig.ParseResult {
	json, err := svcconfig.Merge(f.config.ServiceConfig, tree.Config)
	if err != nil {
		return &serviceconfig.ParseResult{Err: err}
	}
	if f.parsed == nil || f.json != json {
		f.json, f.parsed = json, f.cc.ParseServiceConfig(json)
	}
	return f.parsed
}

// checkServiceConfig returns an error where no update could be taken, because of a
// mistake in the user's service config.
func (f *Feed) checkServiceConfig() error {
	if err := svcconfig.Check(f.config.ServiceConfig); err != nil {
		return err
	}
	if parsed := f.parse(topology.Join(f.config.Settings)); parsed != nil && parsed.Err != nil {
		return fmt.Errorf("service config: %w", parsed.Err)
	}
	return nil
}

// whyNone returns an error that says, in a line, why there is no endpoint. It wraps
// nothing: gRPC would take a status for final, and end calls that wait for ready with it.
func (f *Feed) whyNone() error {
	const most = 4 // causes that are worth reading
	if len(f.words) == 1 && f.config.Mechanisms[0].Name == "" {
		return errors.New(f.line(0, f.words[0].err.Error()))
	}
	var causes []string
	for i, word := range f.words {
		switch {
		case i >= most:
		case word.err != nil:
			causes = append(causes, fmt.Sprintf("%s: %v", f.config.Mechanisms[i].Name, word.err))
		default:
			causes = append(causes, fmt.Sprintf("%s: no answer yet", f.config.Mechanisms[i].Name))
		}
	}
	text := f.config.Scheme + ": no part has an address: " + strings.Join(causes, "; ")
	if more := len(f.words) - most; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return errors.New(text)
}

// line returns what is said of mechanism i as an error or a line of the log.
func (f *Feed) line(i int, text string) string {
	prefix := f.config.Scheme + ": "
	if name := f.config.Mechanisms[i].Name; name != "" {
		return prefix + name + ": " + text
	}
	return prefix + strings.TrimPrefix(text, prefix)
}
