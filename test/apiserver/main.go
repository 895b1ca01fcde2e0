// Command apiserver runs a Kubernetes control plane for tests in one process: kube-apiserver with
// its own etcd, and the controllers for Deployments, ReplicaSets, EndpointSlices and garbage
// collection. There's no kubelet, scheduler or kube-proxy.
//
//	apiserver DIR PORT [FLAG…]
//
// The server's state is in DIR, so you can kill the server and start it again. It also writes three
// files there: apiserver.crt (the root certificate), token (an administrator's token) and etcd (the
// URL of etcd). It prints "ready" once it's ready, and exits when its standard input is closed.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/component-base/cli"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/endpointslice"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/replicaset"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: apiserver DIR PORT [FLAG…]")
		os.Exit(2)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	s := server{dir: os.Args[1], port: os.Args[2]}
	args, err := s.prepare()
	if err != nil {
		fmt.Fprintln(os.Stderr, "apiserver:", err)
		os.Exit(1)
	}
	go func() {
		if err := s.runControllers(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, "apiserver:", err)
			os.Exit(1)
		}
	}()
	command := app.NewAPIServerCommand()
	command.SetArgs(append(args, os.Args[3:]...))
	os.Exit(cli.Run(command))
}

type server struct{ dir, port, token string }

func (s *server) file(name string) string { return filepath.Join(s.dir, name) }

func (s *server) createOnce(name string, content func() ([]byte, error)) (string, error) {
	b, err := os.ReadFile(s.file(name))
	if !errors.Is(err, os.ErrNotExist) {
		return string(b), err
	}
	if b, err = content(); err != nil {
		return "", err
	}
	return string(b), os.WriteFile(s.file(name), b, 0o600)
}

func (s *server) prepare() (flags []string, err error) {
	if s.token, err = s.createOnce("token", func() ([]byte, error) { return []byte(rand.Text()), nil }); err != nil {
		return nil, err
	}
	tokens := func() ([]byte, error) { return []byte(s.token + `,admin,admin,"system:masters"` + "\n"), nil }
	if _, err = s.createOnce("tokens.csv", tokens); err != nil {
		return nil, err
	}
	if _, err = s.createOnce("accounts.key", keyutil.MakeEllipticPrivateKeyPEM); err != nil {
		return nil, err
	}
	free, err := net.Listen("tcp", "127.0.0.1:0") // etcd has to know its port in advance, so find a free one
	if err != nil {
		return nil, err
	}
	_ = free.Close()
	clients, peers := url.URL{Scheme: "http", Host: free.Addr().String()}, url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	c := embed.NewConfig()
	c.Dir, c.LogLevel, c.UnsafeNoFsync = s.file("data"), "error", true
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{clients}, []url.URL{clients}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{peers}, []url.URL{peers}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	etcd, err := embed.StartEtcd(c)
	if err != nil {
		return nil, err
	}
	<-etcd.Server.ReadyNotify()
	return []string{
		"--etcd-servers=" + clients.String(),
		"--etcd-compaction-interval=0", // tests decide when etcd discards versions
		"--cert-dir=" + s.dir,
		"--bind-address=127.0.0.1",
		"--secure-port=" + s.port,
		"--authorization-mode=RBAC",
		"--token-auth-file=" + s.file("tokens.csv"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + s.file("accounts.key"),
		"--service-account-signing-key-file=" + s.file("accounts.key"),
		"--service-cluster-ip-range=10.96.0.0/16",
		"--endpoint-reconciler-type=none",
	}, os.WriteFile(s.file("etcd"), []byte(clients.String()), 0o600)
}

func (s *server) runControllers(ctx context.Context) error {
	config := &rest.Config{Host: "https://127.0.0.1:" + s.port, BearerToken: s.token, QPS: 1000, Burst: 1000,
		TLSClientConfig: rest.TLSClientConfig{CAFile: s.file("apiserver.crt")}}
	var client *kubernetes.Clientset
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		c, err := kubernetes.NewForConfig(config)
		if err != nil {
			return false, nil // kube-apiserver hasn't written its certificate yet
		}
		client = c
		return client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error() == nil, nil
	})
	if err != nil {
		return err
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	pods, services, nodes := factory.Core().V1().Pods(), factory.Core().V1().Services(), factory.Core().V1().Nodes()
	sets, started := factory.Apps().V1().ReplicaSets(), make(chan struct{})
	deployments, err := deployment.NewDeploymentController(ctx, factory.Apps().V1().Deployments(), sets, pods, client)
	if err != nil {
		return err
	}
	collector, err := garbagecollector.NewGarbageCollector(ctx, client, meta,
		restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery())),
		garbagecollector.DefaultIgnoredResources(),
		informerfactory.NewInformerFactory(factory, metadatainformer.NewSharedInformerFactory(meta, 0)), started)
	if err != nil {
		return err
	}
	go deployments.Run(ctx, 5)
	go replicaset.NewReplicaSetController(ctx, sets, pods, client, replicaset.BurstReplicas).Run(ctx, 5)
	go endpointslice.NewController(ctx, pods, services, nodes, factory.Discovery().V1().EndpointSlices(), 100, client, 0).Run(ctx, 5)
	go collector.Run(ctx, 20, 30*time.Second)
	go collector.Sync(ctx, client.Discovery(), 30*time.Second)
	factory.Start(ctx.Done())
	close(started)
	_, err = fmt.Println("ready")
	return err
}
