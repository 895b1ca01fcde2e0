// Package kubernetes finds the endpoints of Kubernetes Services in their EndpointSlices:
//
//	kubernetes:///checkout.shop:grpc              service.namespace, and the name or number of a port
//	kubernetes:///checkout                        in the namespace of this pod, with the default port
//	kubernetes://shop/checkout:8443               the form of kuberesolver
//	kubernetes:///web,web-canary.shop:grpc        several Services of a namespace, as one set
//
// The scheme k8s is an alias. Programs have to import this package to use these targets, since
// package understudy doesn't. The authority is service.namespace, or just service if there's no
// namespace in the target.
//
// Calls go to endpoints that are ready. If there aren't any, they go to endpoints that are
// terminating but still serving, unless the target has ?terminating=never. Each zone is a locality.
// If a dual-stack pod has two addresses, they're one endpoint; use ?addressType=IPv4 or IPv6 for
// just one family. Note that a port number is that of the pod, not of the Service. If there's only
// one port, it's the default. Otherwise, the default is the port named grpc or, failing that, the
// only port whose appProtocol is grpc or kubernetes.io/h2c.
//
// By default, we prefer endpoints according to the cluster's topology hints for zones and nodes. To
// turn this off, use ?prefer=none.
//
// Two labels of a Service affect its endpoints: understudy.dev/priority (0 to 127, default 0) is
// their priority, and understudy.dev/weight (1 to 1,000, default 1) is the weight of each of them.
//
// # The server
//
// In a cluster, the API server's address, its certificate authority and the token come from the
// pod's environment and service account. To use another server, see WithTransport. The account
// needs the verbs list and watch on endpointslices.discovery.k8s.io in the namespace. If it also
// has the verb get on services, errors can explain why there are no slices.
//
// Channels to the same Service share one watch, even if they use different ports. The watch ends 30
// s after the last of these channels has been closed. While the server is unreachable, we keep
// using the endpoints we know. A deleted slice stays in use for 10 s, so that no connections are
// lost if a Service is recreated. If a slice exceeds the API's bounds, we use its last good form,
// or ignore it if there is none, and add a note to the answer.
package kubernetes
