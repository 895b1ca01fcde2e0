package srv

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/testing/flat"
)

// zoneDNS is a DNS server for synctest bubbles. It does not respond for hosts whose names begin
// with "silent". For other hosts, it responds after a millisecond with an address that contains the
// host's number.
type zoneDNS struct {
	mu         sync.Mutex
	records    []*net.SRV
	running    int
	maxRunning int
}

// newZone returns a zoneDNS with SRV records. The text "HOST PRIORITY N" creates N records of that
// priority, with the hosts HOST0, HOST1 and so on.
func newZone(records ...string) *zoneDNS {
	z := &zoneDNS{}
	for _, r := range records {
		var host string
		var priority uint16
		var n int
		_, _ = fmt.Sscan(r, &host, &priority, &n)
		for i := range n {
			z.records = append(z.records, &net.SRV{Target: fmt.Sprintf("%s%d.", host, i), Port: 1, Priority: priority, Weight: 1})
		}
	}
	return z
}

func (z *zoneDNS) LookupSRV(context.Context, string, string, string) (string, []*net.SRV, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	return "", slices.Clone(z.records), nil
}

func (z *zoneDNS) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	if network == "ip6" {
		return nil, &net.DNSError{Name: host, Err: "no such host", IsNotFound: true}
	}
	z.mu.Lock()
	z.running++
	z.maxRunning = max(z.maxRunning, z.running)
	z.mu.Unlock()
	defer func() {
		z.mu.Lock()
		defer z.mu.Unlock()
		z.running--
	}()
	if strings.HasPrefix(host, "silent") {
		<-ctx.Done()
		return nil, &net.DNSError{Name: host, Err: "i/o timeout", IsTimeout: true}
	}
	select {
	case <-time.After(time.Millisecond):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var n int
	if _, err := fmt.Sscanf(strings.TrimLeft(host, "abcdefghijklmnopqrstuvwxyz"), "%d.", &n); err != nil {
		return nil, err
	}
	return []netip.Addr{netip.AddrFrom4([4]byte{10, host[0], byte(n / 250), byte(n % 250)})}, nil
}

func (z *zoneDNS) priorities(t *testing.T, during time.Duration) []string {
	t.Helper()
	var lines []string
	for _, line := range updatesOf(t, z, time.Second, during) {
		at, rest, _ := strings.Cut(line, " ")
		for priority := range strings.SplitSeq(rest, "; ") {
			name, endpoints, _ := strings.Cut(priority, ":")
			at += fmt.Sprintf(" %s:%d", name, len(strings.Fields(endpoints)))
		}
		lines = append(lines, at)
	}
	return lines
}

// Silent hosts must not prevent the lookups of other hosts, in any priority.
func TestSilentHostsDoNotBlockOthers(t *testing.T) {
	for name, test := range map[string]struct {
		zone *zoneDNS
		want string
	}{
		"of the backup":           {newZone("silent 10 48", "well 20 3"), "[5s 20:3]"},
		"of a backup of many":     {newZone("silent 10 200", "well 20 10"), "[5s 20:10]"},
		"of the same priority":    {newZone("silent 10 48", "well 10 40"), "[5s 10:40]"},
		"of many lost priorities": {newZone("silenta 10 8", "silentb 11 8", "silentc 12 8", "well 20 4"), "[5s 20:4]"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fmt.Sprint(test.zone.priorities(t, 29*time.Second)); got != test.want {
				t.Errorf("answers %s, want %s", got, test.want)
			}
		})
	}
}

// Lookups of a huge answer must not run all at the same time.
func TestConcurrentLookupsAreLimited(t *testing.T) {
	z := newZone("silent 10 3000")
	if got := z.priorities(t, 4*time.Second); got != nil || z.maxRunning != maxConcurrentLookups {
		t.Errorf("answers %v, %d lookups at a time, want %d", got, z.maxRunning, maxConcurrentLookups)
	}
}

// A silent host makes a lookup longer. The channel must nevertheless get a new host after 5 s.
func TestNewHostDespiteSilentHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := newZone("well 10 1")
		r := &updateLog{start: time.Now()}
		w, err := source{"_grpc._tcp.x", z, discovery.Refresh{Every: 10 * time.Second, RemoveAfter: 2}, ""}.Start(flat.Receiver(r))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(8 * time.Second)
		newRecords := newZone("silent 10 1", "well 10 2").records
		z.mu.Lock()
		z.records = newRecords
		z.mu.Unlock()
		time.Sleep(10 * time.Second)
		w.Close()
		synctest.Wait()
		if len(r.lines) != 2 || !strings.HasSuffix(r.lines[1], " 10: 10.119.0.0:1*1 10.119.0.1:1*1") {
			t.Errorf("answers %q, want the new host 5 s after the lookup began", r.lines)
		}
	})
}

type checkingReceiver struct {
	discovery.Receiver
	t       *testing.T
	answers int
	lastErr error
}

func (r *checkingReceiver) Update(a discovery.Answer) error {
	if _, err := new(topology.Translator).Translate(&a); err != nil {
		r.t.Errorf("the answer breaks the rules: %v", err)
	}
	r.answers++
	return nil
}

func (r *checkingReceiver) Fail(err error) { r.lastErr = err }

// hostileDNS is a DNS server that never sends the same response twice. It sends as many SRV records
// as a DNS message can contain, and hundreds of addresses for every tenth host.
type hostileDNS struct{ lookups int }

func (h *hostileDNS) LookupSRV(context.Context, string, string, string) (string, []*net.SRV, error) {
	h.lookups++
	var records []*net.SRV
	for i := range 3000 {
		records = append(records, &net.SRV{Target: fmt.Sprintf("h%d-%d.", h.lookups, i), Port: uint16(i), Weight: 65535 * uint16(i%2)})
	}
	return "", records, errors.New("some records were left out\nERROR: forged")
}

func (h *hostileDNS) LookupNetIP(_ context.Context, network, host string) ([]netip.Addr, error) {
	var lookup, n int
	_, _ = fmt.Sscanf(host, "h%d-%d.", &lookup, &n)
	addresses := make([]netip.Addr, 200)
	if n%10 > 0 {
		addresses = addresses[:2] // a flood at every host would only take longer
	}
	for i := range addresses {
		addresses[i] = netip.AddrFrom16([16]byte{0x20, 1, byte(lookup), byte(n >> 8), byte(n), byte(i >> 8), byte(i), network[2]})
	}
	return addresses, nil
}

func TestHostileNameServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, h := &checkingReceiver{t: t}, &hostileDNS{}
		w := source{"_grpc._tcp.x", h, discovery.Refresh{Every: time.Second, RemoveAfter: 3}, ""}.newWatch(flat.Receiver(r))
		for range 4 {
			found, err := w.lookUp(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			_ = w.receiver.Update(found)
		}
		if r.answers < 3 || r.lastErr != nil {
			t.Errorf("%d answers, error %v", r.answers, r.lastErr)
		}
		for _, r := range w.table.records.Values() {
			if n := len(w.table.addressesOf(r, nil)); n > maxAddresses {
				t.Fatalf("a host has %d addresses", n)
			}
		}
	})
}
