// Package kubernetes finds the endpoints of Services of Kubernetes in their EndpointSlices:
//
//	kubernetes:///checkout.shop:grpc              service.namespace, and the name or number of a port
//	kubernetes:///checkout                        in the namespace of this pod, the only port, or that of gRPC
//	kubernetes://shop/checkout:8443               as kuberesolver writes it
//	kubernetes:///web,web-canary.shop:grpc        several Services of a namespace, as one set
//
// k8s: is the same scheme. A program imports this package for it; package understudy does not.
// The authority is service.namespace, or service where the target gives no namespace.
//
// Calls go to endpoints that are ready, and, where there are none at all, to those that serve while they
// terminate, unless ?terminating=never is given. Each zone is a locality. ?addressType=IPv4 or IPv6
// leaves out the other family; by default the two addresses of a pod are one endpoint. A port by number is the
// pod's, not the Service's. Without a port the only one counts, else the one with the name grpc, else
// the only one whose appProtocol is grpc or kubernetes.io/h2c.
//
// What the cluster hints for clients of a zone or a node is preferred by default: ?prefer=none prefers nothing.
//
// The labels understudy.dev/priority (0 to 127, the default is 0) and understudy.dev/weight (1 to 1,000, of
// each endpoint, the default is 1) of a Service rank and weigh its endpoints.
//
// # The server
//
// In a cluster the server, its certificate authority and the token come from the pod's environment and
// service account. WithTransport gives others. The account needs list and watch on
// endpointslices.discovery.k8s.io in the namespace; with get on services an error says why there are none.
// Channels to one Service share one watch, whatever their ports, which ends 30 s after the last of them. While the server is away, what is known stays in use. A slice that is
// deleted counts for 10 s more, so that a Service which is created again loses no connection. One that
// is beyond the API's bounds is left out, or counts as it was before, with a note.
package kubernetes
