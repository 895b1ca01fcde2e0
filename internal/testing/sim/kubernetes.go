package sim

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/understudy-lb/understudy/discovery/kubernetes"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

// kubeServices has the names of two Services for each possible priority, in order. A name is one
// letter, because log lines truncate long targets.
const kubeServices = "abcdefgh"

// kube is the source of a kubernetes: target. It has a fake API server, and a controller that
// writes EndpointSlices to it. Each priority has two Services with different weights.
type kube struct {
	api  *apiServer
	stop context.CancelFunc
	wake chan struct{}
	rand *rand.Rand

	mu      sync.Mutex
	truth   EndpointSet
	layout  int       // determines the slice of each endpoint
	deleted time.Time // when the controller last deleted a Service
}

func newKube(w *World, truth EndpointSet) *kube {
	ctx, stop := context.WithCancel(context.Background())
	k := &kube{stop: stop, wake: make(chan struct{}, 1), truth: truth, rand: rand.New(rand.NewPCG(w.rand.Uint64(), 1))} //nolint:gosec // draws a schedule, not a secret
	k.api = newAPIServer(ctx, rand.New(rand.NewPCG(w.rand.Uint64(), 2)))                                                //nolint:gosec // draws a schedule, not a secret
	for name, s := range k.wanted() {
		k.api.set(name, s)
	}
	go k.control(ctx)
	return k
}

func kubeService(tier int, weight uint32) (name string, labelled uint32) {
	if weight > 2 {
		return kubeServices[2*tier+1:][:1], 3
	}
	return kubeServices[2*tier:][:1], 1
}

func (k *kube) Target() string {
	return "k8s://sim/" + strings.Join(strings.Split(kubeServices, ""), ",")
}

func (k *kube) Options() []given.Option {
	return []given.Option{given.Sources(kubernetes.WithTransport("http://10.9.0.6", k.api))}
}

// Visible replaces the weight of each endpoint by that of its Service, and leaves out regions,
// empty priorities and empty localities. If all endpoints are draining, they take the calls.
func (k *kube) Visible(truth EndpointSet) EndpointSet {
	seen, useDraining := EndpointSet{}, len(truth.serving()) == 0
	for i, tier := range truth {
		var seenTier Tier
		for _, l := range tier {
			l = Locality{Zone: "/" + l.Zone, Endpoints: slices.Clone(l.Endpoints)}
			for n := range l.Endpoints {
				e := &l.Endpoints[n]
				_, e.Weight = kubeService(i, e.Weight)
				if e.Draining = e.Draining && !useDraining; !e.Draining {
					l.Weight += e.Weight
				}
			}
			if len(l.Endpoints) > 0 {
				seenTier = append(seenTier, l)
			}
		}
		if len(seenTier) > 0 {
			seen = append(seen, seenTier)
		}
	}
	return seen
}

func (k *kube) Publish(truth EndpointSet) {
	k.mu.Lock()
	k.truth = truth
	k.mu.Unlock()
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func (k *kube) Fail(r *rand.Rand) string {
	return k.api.fail(apiFault(1 + r.IntN(int(apiFaultCount)-1)))
}
func (k *kube) Restore() { k.api.restore() }

// kubeMaxWriteTime is the longest time that the controller takes to write all slices.
// kubeMaxDeleteGap is the longest time between two deletions of slices of the same Service, and
// kubeMaxRecreateTime is the longest time until a deleted Service is created again.
const (
	kubeMaxWriteTime    = 8 * time.Second
	kubeMaxDeleteGap    = 3 * time.Second // four slices are deleted within 9 s, which is less than the 10 s for which a deleted slice is still used
	kubeMaxRecreateTime = 8 * time.Second
)

// Lag is the sum of the time that the controller takes, the 10 s for which a deleted slice is still
// used, and the time to begin a new watch if the previous watch has ended.
func (k *kube) Lag() time.Duration { return kubeMaxWriteTime + 10*time.Second + 3*time.Second }

// Recovery is the sum of a backoff, a watch that waits for a version which does not exist yet,
// another backoff, the time for a new list, and Lag.
func (k *kube) Recovery() time.Duration {
	return 144*time.Second + maxWatchTime + 144*time.Second + time.Minute + k.Lag()
}

// KeepsEmptyPriorities returns false, because a priority without endpoints has no slices.
func (k *kube) KeepsEmptyPriorities() bool { return false }

func (k *kube) Close() { k.stop() }

func (k *kube) wanted() map[string]kubeSlice {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := map[string]kubeSlice{"a-empty": {service: "a", weight: 1}}
	for i, tier := range k.truth {
		for _, l := range tier {
			for _, e := range l.Endpoints {
				service, weight := kubeService(i, e.Weight)
				name := fmt.Sprintf("%s-%d", service, (digit(e.Address)*(k.layout+1)+k.layout)%3)
				s := all[name]
				s.service, s.priority, s.weight = service, i, weight
				s.endpoints = append(slices.Clone(s.endpoints), kubeEndpoint{e.Address, l.Zone, e.Draining})
				all[name] = s
			}
		}
	}
	return all
}

// control writes the slices when the endpoints change. Sometimes it moves endpoints to other
// slices, or deletes a Service and creates it again, which must not affect the channel.
func (k *kube) control(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-k.wake:
		case <-time.After(time.Duration(30+k.rand.IntN(270)) * time.Second):
			if k.rand.IntN(2) == 0 {
				k.recreate(ctx)
				break
			}
			k.mu.Lock()
			k.layout++
			k.mu.Unlock()
		}
		k.write(ctx)
	}
}

func (k *kube) write(ctx context.Context) {
	// This first adds the new endpoints to all slices, then removes the old endpoints, and finally
	// deletes the empty slices.
	want := k.wanted()
	names := slices.Sorted(maps.Keys(want))
	for _, name := range names {
		s, before := want[name], k.api.get(name)
		for _, e := range before.endpoints {
			if !slices.ContainsFunc(s.endpoints, func(o kubeEndpoint) bool { return o.address == e.address }) {
				s.endpoints = append(slices.Clone(s.endpoints), e)
			}
		}
		k.set(ctx, name, s)
	}
	for _, name := range names {
		k.set(ctx, name, want[name])
	}
	for _, name := range k.api.names() {
		if _, wanted := want[name]; !wanted {
			k.api.remove(name)
			k.pause(ctx, 100*time.Millisecond)
		}
	}
}

func (k *kube) set(ctx context.Context, name string, s kubeSlice) {
	if k.api.set(name, s) {
		k.pause(ctx, 200*time.Millisecond)
	}
}

func (k *kube) pause(ctx context.Context, longest time.Duration) {
	// In half of the cases, we do not wait.
	if k.rand.IntN(2) == 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(k.rand.Int64N(int64(longest)))):
	}
}

func (k *kube) recreate(ctx context.Context) {
	// The controller then writes them again while the channel still uses the deleted slices.
	all := k.api.names()
	service := k.api.get(all[k.rand.IntN(len(all))]).service
	all = slices.DeleteFunc(all, func(name string) bool { return k.api.get(name).service != service })
	k.rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	pause := func(longest time.Duration) (over bool) { // over is true if the controller must write slices or stop
		select {
		case <-ctx.Done():
			return true
		case <-k.wake:
			return true
		case <-time.After(time.Duration(k.rand.Int64N(int64(longest)))):
			return false
		}
	}
	for i, name := range all {
		if i > 0 && pause(kubeMaxDeleteGap) {
			return
		}
		k.mu.Lock()
		k.deleted = time.Now()
		k.mu.Unlock()
		k.api.remove(name)
	}
	pause(kubeMaxRecreateTime)
}

// mayLackService is true if a new watch may find a Service without slices, because the controller
// has deleted them recently.
func (k *kube) mayLackService() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.deleted.IsZero() && time.Since(k.deleted) < k.Lag()+kubeMaxRecreateTime
}

type kubeSlice struct {
	service   string
	priority  int
	weight    uint32
	endpoints []kubeEndpoint
}

type kubeEndpoint struct {
	address, zone string
	draining      bool
}

func (s kubeSlice) json(name string, version int) string {
	objects := func(names []string) (all []any) {
		for _, n := range names {
			all = append(all, map[string]any{"name": n})
		}
		return all
	}
	endpoints := []any{}
	port := uint32(0)
	for _, e := range s.endpoints {
		host, p := splitAddress(e.address)
		port = p
		endpoints = append(endpoints, map[string]any{
			"addresses": []string{host}, "zone": e.zone, "nodeName": nodeOf(e.address), "targetRef": map[string]any{"uid": "pod-" + host},
			"conditions": map[string]any{"ready": !e.draining, "serving": true, "terminating": e.draining},
			"hints":      map[string]any{"forZones": objects(forZones(e.address)), "forNodes": objects(forNodes(e.address))},
		})
	}
	return string(marshal(map[string]any{
		"metadata": map[string]any{"name": name, "resourceVersion": fmt.Sprint(version), "labels": map[string]any{
			"kubernetes.io/service-name": s.service, "understudy.dev/priority": fmt.Sprint(s.priority), "understudy.dev/weight": fmt.Sprint(s.weight)}},
		"addressType": "IPv4", "endpoints": endpoints,
		"ports": []any{map[string]any{"name": "grpc", "port": cmp.Or(port, 443)}},
	}))
}

func (w *World) missingSliceLine(m []string) string {
	k := sourceOf[*kube](w)
	for part := range strings.SplitSeq(m[1], "; ") {
		service := strings.Fields(part)[1]
		if age := k.api.servesFor(service); age > k.Lag() && w.sourceLine(m) != "" {
			return fmt.Sprintf("Service %s has had slices for %v", service, age)
		}
	}
	return ""
}
