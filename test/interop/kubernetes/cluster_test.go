//go:build kubernetes

package kubernetes

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/emptypb"
)

const (
	port  = "8080"
	grace = 5 * time.Second
)

type cluster struct {
	api       *api
	namespace string
	slots     chan struct{}

	mu              sync.Mutex
	cordoned        map[string]bool
	nodes           []string
	nextNode        int
	pods            map[string]*pod
	listenAddresses map[string]string // by the address of a pod, the loopback address at which its server listens
	lastIP          netip.Addr
	dials           int
}

type pod struct {
	node, ip string
	server   *grpc.Server
	ending   bool
}

type podObject struct {
	Metadata struct {
		Name              string
		DeletionTimestamp string
	}
	Spec struct{ NodeName string }
}

// newCluster creates a namespace with three nodes in three zones. number is a part of the addresses
// of its pods, so that the pods of two clusters have different addresses.
func newCluster(t *testing.T, a *api, namespace string, number byte) *cluster {
	c := &cluster{api: a, namespace: namespace, slots: make(chan struct{}, 16), cordoned: make(map[string]bool),
		pods: make(map[string]*pod), listenAddresses: make(map[string]string), lastIP: netip.AddrFrom4([4]byte{10, number, 0, 0})}
	a.must(t, http.MethodPost, "/api/v1/namespaces", object{"metadata": object{"name": namespace}}, nil)
	a.must(t, http.MethodPost, c.path("serviceaccounts"), object{"metadata": object{"name": "default"}}, nil)
	for _, zone := range []string{"a", "b", "c"} {
		node := namespace + "-" + zone
		c.nodes = append(c.nodes, node)
		a.must(t, http.MethodPost, "/api/v1/nodes", object{"metadata": object{"name": node,
			"labels": object{"topology.kubernetes.io/zone": zone}}}, nil)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		running.Wait()
		for _, p := range c.pods {
			p.server.Stop()
		}
	})
	running.Go(func() {
		watch(ctx, a, c.path("pods")+"?", func(kind string, p podObject) {
			running.Go(func() { c.handlePodEvent(ctx, kind, p) })
		})
	})
	return c
}

func (c *cluster) path(resource string) string {
	return "/api/v1/namespaces/" + c.namespace + "/" + resource
}

func (c *cluster) deploy(t *testing.T, name string, replicas int) {
	t.Helper()
	labels := object{"app": name}
	c.api.must(t, http.MethodPost, c.deployments(), object{"metadata": object{"name": name}, "spec": object{
		"replicas": replicas, "selector": object{"matchLabels": labels},
		"template": object{"metadata": object{"labels": labels}, "spec": object{
			"terminationGracePeriodSeconds": grace / time.Second,
			"containers":                    []object{{"name": "web", "image": "web"}}}}}}, nil)
	c.serve(t, name)
}

func (c *cluster) deployments() string {
	return "/apis/apps/v1/namespaces/" + c.namespace + "/deployments"
}

func (c *cluster) serve(t *testing.T, name string) {
	t.Helper()
	c.api.must(t, http.MethodPost, c.path("services"), object{"metadata": object{"name": name}, "spec": object{
		"selector": object{"app": name}, "ports": []object{{"name": "grpc", "port": 80, "targetPort": 8080}}}}, nil)
}

func (c *cluster) scale(t *testing.T, name string, replicas int) {
	t.Helper()
	c.api.must(t, http.MethodPatch, c.deployments()+"/"+name, object{"spec": object{"replicas": replicas}}, nil)
}

// roll changes the template of a Deployment, like "kubectl rollout restart".
func (c *cluster) roll(t *testing.T, name string) {
	t.Helper()
	c.api.must(t, http.MethodPatch, c.deployments()+"/"+name, object{"spec": object{"template": object{"metadata": object{
		"annotations": object{"kubectl.kubernetes.io/restartedAt": time.Now().Format(time.RFC3339Nano)}}}}}, nil)
}

// drain cordons a node and evicts all of its pods, like "kubectl drain".
func (c *cluster) drain(t *testing.T, node string) (evicted int) {
	t.Helper()
	c.mu.Lock()
	c.cordoned[node] = true
	var names []string
	for name, p := range c.pods {
		if p.node == node && !p.ending {
			names = append(names, name)
		}
	}
	c.mu.Unlock()
	for _, name := range names {
		c.api.must(t, http.MethodPost, c.path("pods/"+name+"/eviction"),
			object{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": object{"name": name}}, nil)
	}
	return len(names)
}

// handlePodEvent handles an event about a pod, like the scheduler and the kubelets of a cluster.
func (c *cluster) handlePodEvent(ctx context.Context, kind string, p podObject) {
	name := p.Metadata.Name
	defer notifyChange()
	c.mu.Lock()
	known := c.pods[name]
	switch {
	case kind == "DELETED":
		delete(c.pods, name)
		c.mu.Unlock()
		if known != nil {
			known.server.Stop()
		}
	case p.Metadata.DeletionTimestamp != "":
		first := known != nil && !known.ending
		if first {
			known.ending = true
		}
		c.mu.Unlock()
		if first {
			notifyChange()
			c.terminate(ctx, name, known)
		}
	case p.Spec.NodeName == "":
		for c.cordoned[c.nodes[c.nextNode%len(c.nodes)]] {
			c.nextNode++
		}
		node := c.nodes[c.nextNode%len(c.nodes)]
		c.nextNode++
		c.mu.Unlock()
		c.updatePod(ctx, http.MethodPost, name+"/binding", object{"metadata": object{"name": name},
			"target": object{"apiVersion": "v1", "kind": "Node", "name": node}})
	case known == nil:
		known = &pod{node: p.Spec.NodeName}
		c.run(known)
		c.pods[name] = known
		c.mu.Unlock()
		notifyChange()
		c.updatePod(ctx, http.MethodPatch, name+"/status", object{"status": object{"phase": "Running",
			"podIP": known.ip, "podIPs": []object{{"ip": known.ip}},
			"conditions": []object{{"type": "Ready", "status": "True"}, {"type": "ContainersReady", "status": "True"}}}})
	default:
		c.mu.Unlock()
	}
}

// terminate terminates a pod. The pod serves for its grace period, completes the calls in flight,
// and is then deleted.
func (c *cluster) terminate(ctx context.Context, name string, p *pod) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(grace):
	}
	p.server.GracefulStop()
	c.updatePod(ctx, http.MethodDelete, name, object{"gracePeriodSeconds": 0})
}

func (c *cluster) updatePod(ctx context.Context, method, what string, body object) {
	c.slots <- struct{}{}
	defer func() { <-c.slots }()
	for ctx.Err() == nil {
		r, err := c.api.send(ctx, method, c.path("pods/"+what), body)
		if err == nil && (r.code < 300 || r.code == http.StatusNotFound || r.code == http.StatusConflict) {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

func (c *cluster) run(p *pod) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	c.lastIP = c.lastIP.Next()
	p.ip = c.lastIP.String()
	c.listenAddresses[net.JoinHostPort(p.ip, port)] = l.Addr().String()
	p.server = grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		if err := stream.RecvMsg(&emptypb.Empty{}); err != nil {
			return err
		}
		if err := stream.SetHeader(metadata.Pairs("pod", p.ip)); err != nil {
			return err
		}
		return stream.SendMsg(&emptypb.Empty{})
	}))
	go func() { _ = p.server.Serve(l) }()
}

func (c *cluster) dial(ctx context.Context, address string) (net.Conn, error) {
	c.mu.Lock()
	listenAddress := c.listenAddresses[address]
	c.dials++
	c.mu.Unlock()
	if listenAddress == "" {
		return nil, fmt.Errorf("no route to %s", address)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", listenAddress)
}

func (c *cluster) dialCount() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dials
}

func (c *cluster) running() map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make(map[string]bool)
	for _, p := range c.pods {
		if !p.ending {
			all[p.ip] = true
		}
	}
	return all
}

type sliceObject struct {
	Metadata  struct{ Name string }
	Endpoints []struct {
		Addresses  []string
		Conditions struct{ Ready, Serving, Terminating *bool }
	}
}

// observer watches the EndpointSlices of a Service, and records when events arrive.
type observer struct {
	mu     sync.Mutex
	slices map[string]sliceObject
	// ready has two times for each address: when the endpoint became ready, and when it was no longer
	// ready. The second time is zero while the endpoint is ready.
	ready  map[string][2]time.Time
	ending map[string]time.Time // by address, when the endpoint began to terminate
}

func (c *cluster) observe(t *testing.T, name string) *observer {
	o := &observer{slices: make(map[string]sliceObject), ready: make(map[string][2]time.Time), ending: make(map[string]time.Time)}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })
	path := "/apis/discovery.k8s.io/v1/namespaces/" + c.namespace + "/endpointslices?labelSelector=kubernetes.io/service-name%3D" + name + "&"
	running.Go(func() { watch(ctx, c.api, path, o.handleSliceEvent) })
	return o
}

func (o *observer) handleSliceEvent(kind string, s sliceObject) {
	now := time.Now()
	defer notifyChange()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.slices[s.Metadata.Name] = s; kind == "DELETED" {
		delete(o.slices, s.Metadata.Name)
	}
	ready := make(map[string]bool)
	for _, s := range o.slices {
		for _, e := range s.Endpoints {
			ip := e.Addresses[0]
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				ready[ip] = true
			}
			if _, known := o.ending[ip]; !known && e.Conditions.Terminating != nil && *e.Conditions.Terminating {
				o.ending[ip] = now
			}
		}
	}
	for ip := range ready {
		if times, known := o.ready[ip]; !known || !times[1].IsZero() {
			o.ready[ip] = [2]time.Time{now}
		}
	}
	for ip, times := range o.ready {
		if !ready[ip] && times[1].IsZero() {
			o.ready[ip] = [2]time.Time{times[0], now}
		}
	}
}

func (o *observer) terminates(ip string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.ending[ip].IsZero()
}

func (o *observer) count() (slices, ready, all int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range o.slices {
		all += len(s.Endpoints)
	}
	for _, times := range o.ready {
		if times[1].IsZero() {
			ready++
		}
	}
	return len(o.slices), ready, all
}

// delay returns for how long a client could have known, at the given moment, that the endpoint at
// ip terminates and that another endpoint is ready. It returns zero if a client could not know
// this.
func (o *observer) delay(ip string, moment time.Time) (longest time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	since, ok := o.ending[ip]
	if !ok {
		return 0
	}
	for _, times := range o.ready {
		if times[1].IsZero() || times[1].After(moment) {
			longest = max(longest, min(moment.Sub(since), moment.Sub(times[0])))
		}
	}
	return longest
}

func (o *observer) names() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(maps.Keys(o.slices))
}

func (o *observer) waitReady(t *testing.T, n int) map[string]bool {
	t.Helper()
	await(t, fmt.Sprintf("%d endpoints are ready", n), func() bool { _, ready, _ := o.count(); return ready == n })
	o.mu.Lock()
	defer o.mu.Unlock()
	all := make(map[string]bool)
	for ip, times := range o.ready {
		if times[1].IsZero() {
			all[ip] = true
		}
	}
	return all
}
