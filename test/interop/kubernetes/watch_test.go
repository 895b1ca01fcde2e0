//go:build kubernetes

package kubernetes

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"
)

// grant applies the manifests of docs/kubernetes.md for an account and a namespace of the test.
func (a *api) grant(t *testing.T, namespace, account string) {
	t.Helper()
	page, err := os.ReadFile("../../../docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	text = strings.NewReplacer("namespace: shop", "namespace: "+namespace, "storefront", account).Replace(text)
	for _, r := range a.apply(t, text, "") {
		if r.code != http.StatusCreated || len(r.warnings) > 0 {
			t.Fatalf("the response to the Role of docs/kubernetes.md is %d %s %s", r.code, r.warnings, r.body)
		}
	}
}

// If the account has no rights, errors must contain the verbs, the resource, the namespace and the
// account. When the Role of docs/kubernetes.md has been applied, calls on the same channel must
// succeed, and the account must have no other rights.
func TestRights(t *testing.T) {
	c := newCluster(t, shared.api, "rights", 2)
	c.deploy(t, "web", 2)
	await(t, "two pods", func() bool { return len(c.running()) == 2 })
	client := shared.account(t, "rights", "client")
	const target = "kubernetes:///web.rights:grpc"
	cc := c.channel(t, target, client)
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	err := cc.Invoke(ctx, "/web/Get", &emptypb.Empty{}, &emptypb.Empty{}, grpc.WaitForReady(false))
	for _, part := range []string{"list and watch on endpointslices.discovery.k8s.io in namespace rights", "403",
		`User "system:serviceaccount:rights:client"`, `cannot watch resource "endpointslices"`, "docs/kubernetes.md"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("a call without rights fails with %v, want %s in it", err, part)
		}
	}
	shared.grant(t, "rights", "client")
	expectPods(t, cc, c.running())

	var review struct {
		Status struct {
			ResourceRules []struct{ APIGroups, Resources, Verbs []string }
		}
	}
	client.must(t, http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
		object{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": object{"namespace": "rights"}}, &review)
	var rules []string
	for _, r := range review.Status.ResourceRules {
		// Every account has rights in the groups authentication and authorization.
		if !strings.HasSuffix(r.APIGroups[0], "authentication.k8s.io") && !strings.HasSuffix(r.APIGroups[0], "authorization.k8s.io") {
			rules = append(rules, fmt.Sprint(r.APIGroups, r.Resources, r.Verbs))
		}
	}
	if want := []string{"[discovery.k8s.io] [endpointslices] [list watch]"}; !slices.Equal(rules, want) {
		t.Errorf("the account may do %v, want %v", rules, want)
	}
}

// The source must resume a watch from the version of the last event or bookmark. The server sends a
// bookmark about once a minute.
func TestBookmark(t *testing.T) {
	t.Parallel()
	c := newCluster(t, shared.api, "marks", 3)
	c.deploy(t, "web", 2)
	seen := c.observe(t, "web")
	client := shared.account(t, "marks", "client")
	shared.grant(t, "marks", "client")
	cc := c.channel(t, "kubernetes:///web.marks:grpc", client)
	expectPods(t, cc, seen.waitReady(t, 2))
	_, before := client.history()
	if n := slices.IndexFunc(before, func(e watchEvent) bool { return e.Object.Metadata.Annotations["k8s.io/initial-events-end"] == "true" }); n < 0 {
		t.Errorf("no bookmark after the initial events: %v", before)
	}
	c.deploy(t, "other", 1) // increases the version without an event for the watch
	var last watchEvent
	await(t, "a bookmark", func() bool {
		_, events := client.history()
		last = events[len(events)-1]
		return len(events) > len(before) && last.Type == "BOOKMARK" && last.Object.Metadata.ResourceVersion != before[len(before)-1].Object.Metadata.ResourceVersion
	})
	client.cut()()
	await(t, "another request", func() bool { asked, _ := client.history(); return len(asked) > 1 })
	asked, events := client.history()
	again := asked[len(asked)-1].version
	if !slices.ContainsFunc(events[len(before):], func(e watchEvent) bool { return e.Type == "BOOKMARK" && e.Object.Metadata.ResourceVersion == again }) {
		t.Errorf("after a bookmark with version %s the source watches from %q", last.Object.Metadata.ResourceVersion, again)
	}
	c.scale(t, "web", 4)
	expectPods(t, cc, seen.waitReady(t, 4))
	if asked, _ := client.history(); len(asked) != 2 || asked[0].version != "" {
		t.Errorf("the requests are %v, want one watch and one that resumes it", asked)
	}
}

// While the API server is down, the known endpoints and their connections must stay in use. When it
// is up again, the source must resume its watch. If the server has discarded the version (status
// 410), the source must list all slices again.
func TestServerRestarts(t *testing.T) {
	t.Parallel()
	s, err := newServer(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.kill() })
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	c := newCluster(t, s.api, "away", 4)
	c.deploy(t, "web", 3)
	await(t, "three pods", func() bool { return len(c.running()) == 3 })
	client := s.account(t, "away", "client")
	s.grant(t, "away", "client")
	cc := c.channel(t, "kubernetes:///web.away:grpc", client)
	expectPods(t, cc, c.running())

	dials := c.dialCount()
	s.kill()
	asked, _ := client.history()
	await(t, "the source fails to reach the server", func() bool {
		now, _ := client.history()
		return len(now) > len(asked)+1 && now[len(now)-1].code == 0
	})
	expectPods(t, cc, c.running())
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	c.scale(t, "web", 5)
	await(t, "five pods", func() bool { return len(c.running()) == 5 })
	expectPods(t, cc, c.running())
	if n := c.dialCount() - dials; n != 2 {
		t.Errorf("a restart of the server and two new pods cost %d connections, want 2", n)
	}
	dials = c.dialCount()

	resume := client.cut()
	s.kill()
	if err := s.start("--watch-cache=false"); err != nil { // a watch cache would keep versions that etcd has discarded
		t.Fatal(err)
	}
	c.scale(t, "web", 6)
	await(t, "six pods", func() bool { return len(c.running()) == 6 })
	seen := c.observe(t, "web")
	await(t, "six endpoints", func() bool { _, n, _ := seen.count(); return n == 6 })
	s.compact(t)
	expectPods(t, cc, without(c.running(), c.lastIP.String()))
	resume()
	expectPods(t, cc, c.running())
	asked, _ = client.history()
	t.Logf("the requests are %v", asked)
	if n := c.dialCount() - dials; n != 1 {
		t.Errorf("a discarded version and a new pod cost %d connections, want 1", n)
	}
	if !hasGoneResponse(client) {
		asked, events := client.history()
		t.Errorf("no response is 410: %v %v", asked, events)
	}
}

func without(all map[string]bool, one string) map[string]bool {
	delete(all, one)
	return all
}

func hasGoneResponse(a *api) bool {
	asked, events := a.history()
	return slices.ContainsFunc(asked, func(r request) bool { return r.code == http.StatusGone }) ||
		slices.ContainsFunc(events, func(e watchEvent) bool { return e.Type == "ERROR" && e.Object.Code == http.StatusGone })
}
