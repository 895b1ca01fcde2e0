package sim

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/connectivity"
)

// failoverLine checks the log line of a failover, a failback or any other move: both priorities,
// the duration and the reason.
func (w *World) failoverLine(m []string) string {
	c, opened := w.currentChannelAndTime()
	if m[1] != w.targetText || time.Since(opened) == 0 {
		return "" // it's from another channel, or from the old one, which is closing
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	targets, problem := c.childrenNamed(m[5], m[6])
	if problem != "" {
		return problem
	}
	if problem := checkDuration(m[8], opened); problem != "" {
		return problem
	}
	for _, to := range targets {
		if problem = w.checkFailoverLine(c, m, to); problem == "" {
			return ""
		}
	}
	return problem
}

// checkFailoverLine must be called with c.mu held.
func (w *World) checkFailoverLine(c *channel, m []string, to string) string {
	verb, state, reason := m[2], m[7], m[9]
	if child := c.children[to]; child != nil && !child.reportedNow() && state != child.state.String() && (state != "TRANSIENT_FAILURE" || child.state != connectivity.Connecting) {
		return fmt.Sprintf("%q is %v", to, child.state)
	}
	if verb == "move" && strings.HasSuffix(reason, "is no longer configured") {
		return ""
	}
	sources, problem := c.childrenNamed(m[3], m[4])
	if problem != "" {
		return problem
	}
	if down := number(m[3]) < number(m[5]); down != (verb == "failover") {
		return "wrong direction"
	}
	// The reason for a failback may be the new priority's own state, and that isn't necessarily a
	// good one.
	if problem, concerns := c.children[to].checkFailbackReason(reason); verb != "failover" && concerns && strings.HasPrefix(reason, "p"+m[5]+" ") {
		return problem
	}
	for _, from := range sources {
		leaving := c.children[from]
		if leaving == nil || leaving.reportedNow() {
			return ""
		}
		if problem = leaving.checkReason(reason, w.settings); problem == "" {
			return ""
		}
	}
	return problem
}

var duplicateSuffix = regexp.MustCompile(`'\d+$`)

func (w *World) currentChannelAndTime() (*channel, time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.channel, w.openedAt
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return n
}

// reportedNow returns true if the child's last report came at this very instant. We can't tell the
// order relative to other events then.
func (s *childState) reportedNow() bool { return time.Since(s.reportedAt) == 0 }

// childrenNamed returns the children that a log line may mean by this index and title. During an
// update there may be two, because the policy may still have the previous one. If there are none,
// problem says so. The caller holds the lock.
func (c *channel) childrenNamed(index, title string) (children []string, problem string) {
	i := number(index)
	add := func(priorities []string, t tree) {
		if i >= 0 && i < len(priorities) && c.hasTitle(priorities[i], title, t) && !slices.Contains(children, priorities[i]) {
			children = append(children, priorities[i])
		}
	}
	add(c.priorities, c.update)
	if time.Since(c.updatedAt) == 0 {
		add(c.priorities, c.previousUpdate) // the policy may not have received the second of two simultaneous updates
		add(c.previousPriorities, c.previousUpdate)
	}
	if len(children) == 0 {
		problem = fmt.Sprintf("p%d %s is not one of %v", i, title, c.update.priorities)
	}
	return children, problem
}

// hasTitle reports whether the log may call a child by this title. A title has the discovery
// mechanism, the localities, or both. The policy truncates long ones.
func (c *channel) hasTitle(child, title string, t tree) bool {
	mechanism := child
	if i := strings.LastIndex(child, "/child"); i >= 0 {
		mechanism = duplicateSuffix.ReplaceAllString(child[:i], "")
	}
	if title == child || title == mechanism {
		return true
	}
	if begin, _, cut := strings.Cut(title, "…"); cut {
		return strings.HasPrefix(mechanism+": ", begin) || strings.HasPrefix(begin, mechanism)
	}
	title = strings.TrimPrefix(title, mechanism+": ")
	if strings.HasPrefix(title, "priority ") {
		return true // this is what a mechanism without localities looks like
	}
	localities := strings.Split(title, ", ")
	slices.Sort(localities)
	return slices.Equal(localities, slices.Sorted(maps.Keys(t.weights[child])))
}

func checkDuration(text string, opened time.Time) string {
	d, err := time.ParseDuration(strings.ReplaceAll(text, " ", ""))
	switch {
	case err != nil:
		return err.Error()
	case d > time.Since(opened)+time.Second:
		return fmt.Sprintf("the channel was opened %v ago", time.Since(opened))
	}
	return ""
}

// checkFailbackReason checks the reason for a failback to this child. problem is "" if the reason
// is true. concerns says whether it's about this child at all.
func (s *childState) checkFailbackReason(reason string) (problem string, concerns bool) {
	ready := strings.Contains(reason, " can take calls")
	if ready && s != nil && !s.reportedNow() && s.state != connectivity.Ready && s.state != connectivity.Idle {
		problem = fmt.Sprintf("it is %v", s.state)
	}
	statesState := s != nil && strings.HasSuffix(reason, " is "+s.state.String())
	return problem, ready || statesState || strings.HasSuffix(reason, " is given time to connect")
}

// checkReason returns "" if the reason is true.
func (s *childState) checkReason(reason string, options settings) string {
	_, reason, _ = strings.Cut(reason, " ")
	switch {
	case strings.Contains(reason, "did not connect within"):
		if s.state != connectivity.Connecting || time.Since(s.changedAt) < options.failoverTimeout {
			return fmt.Sprintf("it has been %v for %v", s.state, time.Since(s.changedAt))
		}
	case strings.Contains(reason, "has lost its connections"), strings.Contains(reason, "other endpoints, which connect"):
		if !options.overflow || s.state != connectivity.Connecting && s.state != connectivity.Idle {
			return fmt.Sprintf("it is %v, and overflow is %v", s.state, options.overflow)
		}
	case strings.HasSuffix(reason, "is "+s.state.String()), strings.HasSuffix(reason, "is no longer needed"):
	case s.state != failing:
		return fmt.Sprintf("it is %v", s.state)
	}
	return ""
}

func (w *World) noPriorityLine(m []string) string {
	c, opened := w.currentChannelAndTime()
	if m[1] != w.targetText || time.Since(opened) == 0 {
		return ""
	}
	c.mu.Lock()
	for _, name := range c.priorities {
		if child := c.children[name]; child != nil && !child.reportedNow() && (child.state == connectivity.Ready || child.state == connectivity.Idle) {
			defer c.mu.Unlock()
			return fmt.Sprintf("%q is %v", name, child.state)
		}
	}
	c.mu.Unlock()
	return w.checkErrorText(m[2])
}

func (w *World) recoveredLine(m []string) string {
	c, opened := w.currentChannelAndTime()
	if m[1] != w.targetText || time.Since(opened) == 0 {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	children, problem := c.childrenNamed(m[2], m[3])
	if problem == "" && !slices.ContainsFunc(children, func(name string) bool {
		is := c.children[name]
		return is == nil || is.reportedNow() || is.state != failing
	}) {
		problem = fmt.Sprintf("%q is %v", children, failing)
	}
	if problem == "" {
		problem = checkDuration(m[4], opened)
	}
	return problem
}
