package srv

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/channel/topology"
)

// randomDNS is a DNS server whose responses are made from random bytes. The names in its records
// are always valid, because package net drops records with invalid names.
type randomDNS struct{ remaining []byte }

func (a *randomDNS) next() (b byte) {
	if len(a.remaining) > 0 {
		b, a.remaining = a.remaining[0], a.remaining[1:]
	}
	return b
}

var (
	dnsErrors = []error{nil, &net.DNSError{Name: "shop.test.", Err: "no such host", IsNotFound: true}, &net.DNSError{Err: "server misbehaving", IsTemporary: true}, context.DeadlineExceeded}
	dnsHosts  = []string{"a.test.", "b.test.", ".", "", "c", "a-b.test.", "_x.test.", strings.Repeat("l.", 126)}
)

func (a *randomDNS) LookupSRV(context.Context, string, string, string) (string, []*net.SRV, error) {
	err := dnsErrors[a.next()%4]
	var records []*net.SRV
	for range a.next() % 40 {
		r := &net.SRV{Target: dnsHosts[a.next()%8], Port: uint16(a.next()) << (a.next() % 9), Priority: uint16(a.next() % 4), Weight: uint16(a.next())}
		if r.Weight > 200 {
			r.Weight = 65535
		}
		records = append(records, r)
	}
	return "", records, err
}

// LookupNetIP derives the addresses from the host's name instead of the next bytes, because lookups
// run concurrently.
func (a *randomDNS) LookupNetIP(_ context.Context, network, host string) ([]netip.Addr, error) {
	var seed byte
	if len(a.remaining) > 0 {
		seed = a.remaining[len(host)%len(a.remaining)] + network[2]
	}
	err := dnsErrors[max(0, int(seed%8)-4)]
	var addresses []netip.Addr
	for i := range seed {
		switch b := [16]byte{0x20, 15: i}; {
		case seed%3 == 0:
			addresses = append(addresses, netip.AddrFrom16([16]byte{10: 0xff, 11: 0xff, 12: 10, 15: i}))
		case network == "ip4":
			addresses = append(addresses, netip.AddrFrom4([4]byte{10, 0, seed, i}))
		default:
			addresses = append(addresses, netip.AddrFrom16(b).WithZone(dnsHosts[seed%8]))
		}
	}
	return addresses, err
}

// FuzzAnswers looks up records and hosts several times on a DNS server that sends arbitrary
// responses. The endpoints must be valid and limited in number, each error must be one line, and a
// failed lookup must not remove endpoints that are in use.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte("\x00\x02\x00\x50\x00\x01\x0a\x01\x51\x00\x02\x03\x00\x00\x01\x00\x50\x00\x01\x02"))
	f.Add([]byte("\x00\x01\x02\x00\x00\x00\x00\x02\x00\x00\x27\x01\x01\x08\x01\xff"))
	f.Add([]byte("\x03\x00\x01\x05\x07\xff\x08\x03\xff\x06\xff\x08\x00\x00"))
	f.Fuzz(func(t *testing.T, bytes []byte) {
		dns := &randomDNS{remaining: bytes}
		var updates, failed int
		checkLine := func(text string) {
			if strings.ContainsAny(text, "\n\r\x00\x1b") || len(text) > 10_000 {
				t.Errorf("not a short line: %.2000q", text)
			}
		}
		r := new(discovery.Receiver).With(discovery.Hooks{
			Update: func(a discovery.Answer) error {
				updates++
				if _, err := topology.Check(&a, nil); err != nil {
					t.Errorf("the answer is invalid: %v", err)
				}
				for _, p := range a.Priorities {
					for _, e := range p.Localities[0].Endpoints {
						if len(e.Addresses) != 1 || e.Weight == 0 {
							t.Errorf("an endpoint has the weight %d and %d addresses", e.Weight, len(e.Addresses))
						}
					}
				}
				checkLine(a.Why)
				return nil
			},
			Fail: func(err error) { failed++; checkLine(err.Error()) },
		})
		w := &watch{source: source{name: "_grpc._tcp.shop.test", resolver: dns}, receiver: r, table: table{removeAfter: 2}}
		for n := 1; n <= 3; n++ {
			before := w.table.records.Values()
			found, err := w.lookUp(t.Context())
			if err != nil {
				r.Fail(err)
			} else {
				_ = r.Update(found)
			}
			if after := w.table.records.Values(); err != nil && len(after) < len(before) && failed > 0 && updates == 0 {
				t.Errorf("a failed lookup leaves %d of %d records", len(after), len(before))
			}
		}
	})
}
