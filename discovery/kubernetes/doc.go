// Package kubernetes finds the endpoints of Kubernetes Services in their EndpointSlices:
//
//	kubernetes:///checkout.shop:grpc              service.namespace, and the name or number of a port
//	kubernetes:///checkout                        in the namespace of this pod, with the default port
//	kubernetes://shop/checkout:8443               the form of kuberesolver
//	kubernetes:///web,web-canary.shop:grpc        several Services of a namespace, as one set
//
// The scheme k8s is an alias. To use these targets, a program must import this package, because
// package understudy does not import it. The authority is service.namespace, or service if the
// target has no namespace.
//
// Calls go to endpoints that are ready. If there are none, they go to endpoints that serve while
// they terminate, unless the target has ?terminating=never. Each zone is a locality. The two
// addresses of a dual-stack pod are one endpoint; ?addressType=IPv4 or IPv6 selects one family. A
// port number refers to the port of the pod, not to the port of the Service. If there is only one
// port, it is the default port. Otherwise, the default port is the port named grpc or, if there is
// no such port, the only port whose appProtocol is grpc or kubernetes.io/h2c.
//
// The cluster's topology hints for zones and nodes are preferred by default; ?prefer=none disables
// this preference.
//
// The labels understudy.dev/priority (0 to 127, default 0) and understudy.dev/weight (1 to 1,000,
// default 1) of a Service set the priority of its endpoints and the weight of each endpoint.
//
// # The server
//
// In a cluster, the address of the API server, its certificate authority and the token come from
// the pod's environment and service account. WithTransport configures another server. The account
// needs the verbs list and watch on endpointslices.discovery.k8s.io in the namespace. If it also
// has the verb get on services, errors explain why there are no slices.
//
// Channels to the same Service share one watch, even if they use different ports. The watch ends 30
// s after the last of these channels is closed. While the server is unreachable, the known
// endpoints stay in use. A deleted slice stays in use for 10 s, so that a Service which is
// recreated loses no connection. A slice that exceeds the API's bounds is left out, or used in its
// last good form, and a note is added to the answer.
package kubernetes
