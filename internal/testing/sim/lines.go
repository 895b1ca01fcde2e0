package sim

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/grpclog"

	"github.com/understudy-lb/understudy/internal/text/printable"
)

// currentWorld is the world whose log lines handleLog checks. Only one world runs at a time.
var currentWorld atomic.Pointer[World]

// Listen makes gRPC's logger pass the library's log lines to the current world. Call it once,
// before gRPC is used.
func Listen() { grpclog.SetLoggerV2(logger{grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard)}) }

type logger struct{ grpclog.LoggerV2 }

// line is a pattern of log lines, and a function that returns why a matching line is wrong, or ""
// if the line is true.
type line struct {
	pattern *regexp.Regexp
	check   func(w *World, m []string) string
}

var lines = []line{
	{regexp.MustCompile(`^priority: (\S+)(?: \[Channel #\d+\])?: (failover|failback|move) from p(\d+) (.*) to p(\d+) (.*), which is (\w+), after (.*?): (.*)$`), (*World).failoverLine},
	{regexp.MustCompile(`^priority: (\S+)(?: \[Channel #\d+\])?: no priority can take calls: (.*)$`), (*World).noPriorityLine},
	{regexp.MustCompile(`^priority: (\S+)(?: \[Channel #\d+\])?: p(\d+) (.*) takes (?:all of its calls again|(?:only probes|[\d.]+ % of its calls): (?:full|slow|hanging|broken|returning))$`), (*World).shareLine},
	{regexp.MustCompile(`^priority: (\S+)(?: \[Channel #\d+\])?: (?:calls fail at every priority: .*|calls no longer fail at every priority, after .*|calls are refused: every priority is full|no calls are refused any longer: \d+ were, in .*)$`), (*World).overflowLine},
	{regexp.MustCompile(`^priority: (\S+)(?: \[Channel #\d+\])?: p(\d+) (.*) takes calls again, after (.*) without a usable priority$`), (*World).recoveredLine},
	{regexp.MustCompile(`^\w+: (\S+): (\d+) endpoints? in (\d+) priorit(?:y|ies)$`), (*World).updateLine},
	{regexp.MustCompile(`^failover: sim:///p(\d): its resolver returned no addresses(; .*)?$`), (*World).emptyNameLine},
	{regexp.MustCompile(`^failover: dns:///h(\d):50051: its resolver returned no addresses(; .*)?$`), (*World).emptyHostLine},
	{regexp.MustCompile(`^(.*); the endpoints that were confirmed (\S+) ago are used$`), (*World).storedAnswerLine},
	{regexp.MustCompile(`^(.*); the previous endpoints stay in use$`), (*World).sourceLine},
	{regexp.MustCompile(`^\w+: (?:.*: )?no answer yet: waiting for .*$`), (*World).sourceLine},
	{regexp.MustCompile(`^eds: stream to dns:///10\.9\.0\.\d:18000 (failed|ended): (.*)$`), (*World).sourceLine},
	{regexp.MustCompile(`^eds: stream to dns:///10\.9\.0\.\d:18000: replaced, to unsubscribe from clusters that nobody watches$`), (*World).renewedLine},
	{regexp.MustCompile(`^eds: stream to dns:///10\.9\.0\.\d:18000 received nothing for (\S+) while endpoints failed: opening a second one$`), (*World).silentStreamLine},
	{regexp.MustCompile(`^eds: stream to dns:///10\.9\.0\.\d:18000: it was silent while endpoints failed, and a second stream got a response$`), (*World).silentStreamLine},
	{regexp.MustCompile(`^eds: second stream to dns:///10\.9\.0\.\d:18000: (.*); the first one stays in use$`), (*World).sourceLine},
	{regexp.MustCompile(`^eds: rejected version "(\d+)" from dns:///10\.9\.0\.\d:18000: (.*)$`), (*World).sourceLine},
	{regexp.MustCompile(`^eds: dns:///10\.9\.0\.\d:18000 did not send (endpoints of )?cluster "(\w+)" within 15s$`), (*World).sourceLine},
	{regexp.MustCompile(`: prefer=(\w+) has no effect(?:: the source gives no (.*) for any endpoint| on endpoints without localities, such as those of DNS)$`), (*World).preferLine},
	{regexp.MustCompile(`: the weights of endpoints have no effect with pick_first$`), (*World).weightsLine},
	{regexp.MustCompile(`: outlier_detection of the cluster has no effect with pick_first$`), (*World).pickFirstLine},
	{regexp.MustCompile(`^(eds: cluster "sim\d"|file: /\S+): .*has no effect.*$`), (*World).uselessFieldLine},
	{regexp.MustCompile(`^(eds: (sim\w*: eds: )?no endpoints of cluster|file: open|file: (?:sim\d: )?/|failover: sim:///p\d: )(.*)$`), (*World).sourceLine},
	{regexp.MustCompile(`^eds: cluster "sim\w*": (back to )?management server (.*)$`), (*World).sourceLine},
	{regexp.MustCompile(`^srv: _grpc\._tcp\.sim: the records say that there is no such service$`), (*World).noRecordsLine},
	{regexp.MustCompile(`^\w+: .*the SRV records of _grpc\._tcp\.sim name no server: no calls can be made$`), (*World).noRecordsLine},
	{regexp.MustCompile(`^\w+: .*(?:cluster "\S+" has no localities|Service \S+ has no pods that serve|no endpoint can take calls: .*|there are no endpoints): no calls can be made$`), (*World).emptyClusterLine},
	{regexp.MustCompile(`^eds: (.*)no cluster "\w+" from (.*)$`), (*World).sourceLine},
	{regexp.MustCompile(`^\w+: (?:\S+: )*(Service \S+ has no EndpointSlice(?:; Service \S+ has no EndpointSlice)*)$`), (*World).missingSliceLine},
	{regexp.MustCompile(`^(srv|failover|k8s|kubernetes): (.*)$`), (*World).sourceLine},
	{regexp.MustCompile(`^priority: (?:child "(.*)"|p(\d+) (.*)) refused its update and (?:stays \w+|counts as failed): .*$`), (*World).rejectedLine},
	{regexp.MustCompile(`^outlier_detection: \S+(?: \[Channel #\d+\])?: endpoint (\S+) is ejected by (consecutive_failures|failure_percentage|success_rate); its last failed call ended with [A-Z_]+$`), (*World).ejectedLine},
	{regexp.MustCompile(`^outlier_detection: \S+(?: \[Channel #\d+\])?: endpoint \S+ is no longer ejected$`), func(*World, []string) string { return "" }},
	{regexp.MustCompile(`^pick_first: calls fail: (.*)$`), func(w *World, m []string) string { return w.checkErrorText(m[1]) }},
}

// maxTargetLength is the length to which the priority policy truncates a target in its log lines.
const maxTargetLength = 250

func (w *World) checkLogLine(level, text string) {
	w.Log.Event("%s %s", level, text)
	w.markLine(text)
	if strings.Contains(text, "\n") {
		w.Log.Break(ruleNames, "a line of the log has several lines: %q", text)
	}
	text = strings.Replace(text, printable.Line(w.targetText, maxTargetLength), w.targetText, 1)
	for _, l := range lines {
		if m := l.pattern.FindStringSubmatch(text); m != nil {
			if problem := l.check(w, m); problem != "" {
				w.Log.Break(ruleNames, "%q: %s", text, problem)
			}
			return
		}
	}
	w.Log.Break(ruleNames, "%q: unknown log line", text)
}

func (w *World) updateLine(m []string) string {
	if m[1] != w.target {
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	// The library logs this line before it updates the channel. World.received compares the two.
	if now := time.Now(); w.announcedAt != now {
		w.announced, w.announcedAt = nil, now
	}
	w.announced = append(w.announced, m[2]+" in "+m[3])
	return ""
}

// maxFileSettleTime is how long a new channel may assume that a file is still being written.
const maxFileSettleTime = 5 * time.Second

var clusterOfAggregate = regexp.MustCompile(`^file: sim\d: `)

func (w *World) storedAnswerLine(m []string) string {
	age, err := time.ParseDuration(m[2])
	if err != nil {
		return err.Error()
	}
	w.mu.Lock()
	last, changed := w.lastReceived, w.sourceChangedAt
	w.mu.Unlock()
	if strings.Contains(m[1], "no answer within") && time.Since(changed) < maxFileSettleTime {
		return "" // a new channel may assume that the file is incomplete
	}
	if clusterOfAggregate.MatchString(m[1]) {
		return "" // the aggregate may not have named the cluster for a while
	}
	if n := sourceOf[*names](w); n != nil && n.everEmpty() {
		return "" // a name without addresses does not confirm the stored answer
	}
	// The age of the stored answer is unknown if no channel got an update while all sources worked,
	// or if the channel opened while another channel closed.
	if last.IsZero() {
		return w.sourceLine(m)
	}
	slack := w.source.Lag() + time.Second
	if sourceOf[*kube](w) != nil {
		slack += maxWatchTime // a watch confirms the answer only when it begins and with each bookmark
	}
	if _, opened := w.currentChannelAndTime(); time.Since(opened) > 0 && age > time.Since(last)+slack {
		return fmt.Sprintf("the last update was %v ago", time.Since(last))
	}
	return w.sourceLine(m)
}

// sourceLine checks a log line about a fault of the source. The source must be failing, or must
// have been restored recently.
func (w *World) sourceLine([]string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sourceFault == "" && time.Since(w.sourceWorksSince) > w.source.Recovery() {
		return fmt.Sprintf("the source has worked for %v", time.Since(w.sourceWorksSince))
	}
	return ""
}

// renewedLine checks the log line which says that a stream is renewed to forget unused clusters.
// Only the temporary channels use enough clusters for that.
func (w *World) renewedLine([]string) string {
	if s := sourceOf[*edsSource](w); s.opened <= 100 {
		return fmt.Sprintf("only %d other channels were opened", s.opened)
	}
	return ""
}

// silentStreamLine checks the log lines which say that a stream received nothing while endpoints
// failed, which takes at least 30 s.
func (w *World) silentStreamLine(m []string) string {
	if len(m) > 1 {
		if silence, err := time.ParseDuration(m[1]); err != nil || silence < 30*time.Second {
			return "a stream that was quiet for less than 30 s does not justify a second one"
		}
	}
	if sourceOf[*edsSource](w) == nil {
		return "no source has a stream"
	}
	return ""
}

// emptyNameLine checks the log line which says that a discovery mechanism has no addresses.
func (w *World) emptyNameLine(m []string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range append(w.history[max(0, len(w.history)-2):], w.truth) { // the previous two updates may still be in flight
		if i := int(m[1][0] - '0'); i >= len(t) || len(t[i].Serving()) == 0 {
			return ""
		}
	}
	return "it has addresses: " + w.truth.String()
}

// emptyHostLine checks the log line which says that a DNS name has no addresses. The line is true
// if the name servers fail, or if the priority was empty from the beginning.
func (w *World) emptyHostLine(m []string) string {
	if w.sourceLine(m) == "" {
		return ""
	}
	return w.emptyNameLine(m)
}

func (w *World) noRecordsLine([]string) string {
	s := sourceOf[*records](w)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.Visible(s.truth)) > 0 && len(s.Visible(s.previous)) > 0 {
		return "there are records"
	}
	return ""
}

// emptyClusterLine checks the log line about a discovery mechanism without usable endpoints.
func (w *World) emptyClusterLine([]string) string {
	mix, _ := w.source.(*mixed)
	if k, ok := w.source.(*kube); ok && k.mayLackService() || mix != nil && mix.mayLackService() {
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	earlier := w.history[max(0, len(w.history)-2):]
	if w.sourceFault != "" {
		earlier = w.history // the channel may use a stored answer of any age
	}
	for _, t := range append(slices.Clone(earlier), w.truth) {
		drained := slices.ContainsFunc(t, func(tier Tier) bool { return len(tier.Serving()) == 0 }) // one empty priority is enough, because it may be the only priority of a cluster
		if drained || mix == nil && len(w.source.Visible(t).serving()) == 0 || mix != nil && mix.hasEmptyEntry(t) {
			return ""
		}
	}
	return "endpoints can take calls: " + w.truth.String()
}

func (w *World) rejectedLine(m []string) string {
	c := w.currentChannel()
	c.mu.Lock()
	defer c.mu.Unlock()
	children := []string{m[1]}
	if m[2] != "" {
		children, _ = c.childrenNamed(m[2], m[3])
	}
	problem := ""
	for _, name := range children {
		i := slices.Index(c.update.priorities, name)
		if i < 0 || i >= len(c.truth) || len(c.truth[i].Serving()) == 0 || c.truth[i].mayRefuseUpdate() {
			return ""
		}
		problem = fmt.Sprintf("%q has endpoints: %v", name, c.truth[i])
	}
	return problem
}

// mayRefuseUpdate reports whether a priority may refuse its update although it has endpoints. A
// locality without endpoints refuses its update, and weighted_target returns the error of that
// locality if the endpoints of all other localities are ejected.
func (t Tier) mayRefuseUpdate() bool {
	return t.detection().ejects() && slices.ContainsFunc(t, func(l Locality) bool { return len(Tier{l}.Serving()) == 0 })
}

var lastErrorPattern = regexp.MustCompile(`[;,] (its )?last error: [^;]*`)

// duplicateAddressPattern matches the beginning of the error of a rejected resource, up to an
// address that exists nowhere else.
var duplicateAddressPattern = regexp.MustCompile(`address 10\.0\.\d+\.\d+:\d+ is already in `)

var addressPattern = regexp.MustCompile(`\b10\.0\.\d+\.\d+:\d+\b`)

// checkErrorText checks the text of a connection error, and returns "" if it is true. The channel
// must have had each endpoint in the text, which must have been unreachable recently.
func (w *World) checkErrorText(text string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	// If a priority did not connect in time, its error quotes the last connection error, which may
	// be old.
	text = duplicateAddressPattern.ReplaceAllString(lastErrorPattern.ReplaceAllString(text, ""), "")
	for _, address := range addressPattern.FindAllString(text, -1) {
		c := w.conditions[address]
		switch {
		case c == nil || !w.everKnown[address]:
			return address + " was never one of the channel's"
		case c.reachable() && time.Since(c.changedAt) > w.settings.maxFailoverTime(1):
			return address + " has been reachable for " + strconv.Itoa(int(time.Since(c.changedAt).Seconds())) + " s"
		}
	}
	return ""
}

func (logger) InfoDepth(_ int, args ...any) { handleLog("info:", args) }

func (logger) WarningDepth(_ int, args ...any) { handleLog("warning:", args) }

func (logger) ErrorDepth(_ int, args ...any) { handleLog("error:", args) }

func (logger) FatalDepth(_ int, args ...any) { panic(fmt.Sprint(args...)) }

// handleLog passes the library's log lines to the current world and drops gRPC's own lines.
func handleLog(level string, args []any) {
	w := currentWorld.Load()
	if w == nil || len(args) < 2 || args[0] != "[understudy]" {
		return
	}
	w.checkLogLine(level, strings.TrimSuffix(fmt.Sprint(args[1:]...), "\n"))
}
