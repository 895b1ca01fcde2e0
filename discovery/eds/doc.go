// Package eds resolves the endpoints of a channel through an xDS management server:
//
//	eds://server:port[,server:port…]/cluster[?failoverTimeout=5s&…]
//
// The source requests the ClusterLoadAssignment of that cluster over Envoy's v3 aggregated
// discovery service (ADS), using the state-of-the-world variant. Localities, priorities, weights
// and drops become a tree of policies, as described in
// docs/adr/0004-the-tree-never-changes-shape.md. The channel's authority is the name of the
// cluster, unless the target or an option sets another one. See docs/options.md for the parameters
// that every target accepts.
//
// # The stream
//
// If several channels in a process use the same server with the same credentials, they share one
// stream to it and one copy of the resources that it has sent. The stream is opened with the first
// channel and closed with the last. It keeps its subscriptions to the clusters of closed channels
// until there are more than 100 of them, or more than 16 MiB, and is renewed at that point.
//
// If a response has an invalid resource (gRFC A27), we reject it and tell the server why, but still
// use the valid resources in it. While the stream is down, or responses are rejected, calls use the
// last good endpoints. If there are none, calls fail with the reason: the server can't be reached,
// the resource was rejected, or the resource didn't arrive within 15 s.
//
// A lost stream is reopened with gRPC's backoff, from 1 s to 120 s. To detect a server that has
// disappeared without closing the connection, we send a keepalive ping every 5 minutes, with a
// timeout of 20 s. If a server sends the header "understudy-ping: 30s", as understudy serve does,
// we ping it every 30 s instead. This takes a new stream, so the stream is renewed once, 1 to 5
// minutes after it was opened. For all other servers, we use a second stream if endpoints fail and
// the first stream hasn't received anything for 30 s. It's opened within 10 s, but not more than
// once in 5 minutes, and replaces the first stream if it gets a response within 15 s.
//
// Responses larger than 64 MiB aren't read.
//
// # Clusters
//
// With cds=true in the target, the source first requests the Cluster of that name. If it's an
// aggregate, its clusters become priorities of the channel, in order (gRFC A37). A LOGICAL_DNS
// cluster is resolved through DNS, and an EDS cluster says which ClusterLoadAssignment to request.
// See docs/xds.md for the fields that are used. If a cluster can't be used, it becomes a priority
// without endpoints, and the other clusters aren't affected.
//
// # Several servers
//
// Servers are used in the given order, as in gRFC A71. We only try the next server if the current
// one can't be reached and we don't have the cluster. A server counts as unreachable if a stream
// ends without a response or doesn't receive anything for 15 s. If a server has responded before,
// but doesn't send anything for 15 s after a request for a cluster, it only counts as unreachable
// for the channels that need that cluster. If a channel has endpoints and their server goes down,
// it keeps them, unless the target has fallbackOnReachabilityOnly=true, in which case the rule of
// gRFC A95 applies.
//
// We keep retrying an unreachable server, and use it again as soon as it has sent the cluster. The
// channel then stops using the servers after it in the list. A channel never mixes the resources of
// two servers. Each channel decides on its own, and the log names both servers.
//
// A target can't list several IPv6 addresses. Use a bootstrap for that.
//
// # Credentials
//
// For the connection to a server, the first of these that applies is used: the credentials of
// WithTransportCredentials or WithInsecure; those of the xDS bootstrap, if it lists the server; no
// encryption, if the server is on the loopback interface; TLS with the system's root certificates.
//
// # The bootstrap
//
// The environment variable GRPC_XDS_BOOTSTRAP has the name of a file. If it isn't set,
// GRPC_XDS_BOOTSTRAP_CONFIG has the content itself, as JSON in the format of gRFC A27. The
// bootstrap's node is sent to every server. If there's no server in a target (eds:///cluster), it
// uses the servers in the bootstrap, in order. Their credentials are also used if a target names
// the same host and port. The channel_creds "insecure" and "tls" are supported, and we use the
// first one that is. The files of "tls" (ca_certificate_file, certificate_file and
// private_key_file) are read again for each connection. Other fields are ignored.
//
// If a bootstrap file can't be read, or is invalid, we read it again with gRPC's backoff. Until
// it's valid, calls use the last good endpoints or fail with an error that names the file.
package eds
