package file

import (
	"os"
	"strings"
	"testing"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery/failover"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

// If a file with clusters disappears for a while or is incomplete, the channel must not get an
// update, and the DNS names in the file must not be looked up again.
func TestClusterFileDisappears(t *testing.T) {
	dns := &fakeDNS{
		answers: map[string][]string{"backup.example.com:443": {"10.1.0.1:443"}, "east.example.com:1": {"10.2.0.1:1"}},
		conns:   make(map[string]resolver.ClientConn),
		builds:  make(map[string]int),
	}
	const name = "endpoint: {address: {socket_address: {address: "
	list := []string{
		static("a", "10.0.0.1"),
		dnsCluster("STRICT_DNS", "b", "[{lb_endpoints: [{"+name+"east.example.com, port_value: 1}}}}]}]"),
		dnsCluster("LOGICAL_DNS", "c", "[{lb_endpoints: [{"+name+"backup.example.com, port_value: 443}}}}]}]"),
	}
	content := clustersFile(append(list, aggregate("all", "a, b, c"))...)
	path := newPath(t)
	write(t, path, content)
	c := watchCluster(t, path, "all", given.Sources(failover.WithResolvers(dns)))
	const initialState = `10.0.0.1:1["a/child0" "/"] 10.2.0.1:1["b/child0" "/"] 10.1.0.1:443["c" "/"]`
	if got := c.next(t); got != initialState {
		t.Fatalf("state = %s, want %s", got, initialState)
	}
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	logged.Wait(t, testTimeout, path+": no such file or directory; the previous endpoints stay in use")
	rename(t, path+".away", path)
	write(t, path, content[:len(content)/2])
	logged.Wait(t, testTimeout, path+":", "; the previous endpoints stay in use")
	replace(t, path, content)
	replace(t, path, strings.Replace(content, "[a, b, c]", "[a, c, b]", 1))
	const reorderedState = `10.0.0.1:1["a/child0" "/"] 10.1.0.1:443["c" "/"] 10.2.0.1:1["b/child0" "/"]`
	if got := c.next(t); got != reorderedState {
		t.Errorf("state = %s, want %s", got, reorderedState)
	}
	for name := range dns.answers {
		if n := dns.buildCount(name); n != 1 {
			t.Errorf("%d resolvers were built for %s, want one", n, name)
		}
	}
}
