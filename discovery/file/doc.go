// Package file resolves targets of the form
//
//	file:///path/to/endpoints.yaml[?cluster=CLUSTER&authority=NAME&…]
//
// to the endpoints in a file, and watches the file. An edit takes effect within a second, or within
// about three seconds if the file has 100,000 endpoints. Importing the package registers the
// resolver and its policies. However many channels use a file, each process only watches, reads and
// parses it once.
//
// The file is an envoy.config.endpoint.v3.ClusterLoadAssignment in YAML or JSON, i.e. what an xDS
// control plane sends for a cluster. Field names are those of protobuf's JSON form (lb_endpoints or
// lbEndpoints):
//
//	endpoints:
//	- locality: {region: us-east, zone: a}
//	  load_balancing_weight: 3
//	  lb_endpoints:
//	  - endpoint: {address: {socket_address: {address: 192.0.2.1, port_value: 443}}}
//	    load_balancing_weight: 2
//	- locality: {region: eu-west}
//	  priority: 1
//	  load_balancing_weight: 1
//	  lb_endpoints:
//	  - endpoint: {address: {socket_address: {address: 198.51.100.1, port_value: 443}}}
//
// If none of a priority's localities has a weight, they all have weight 1. Otherwise a locality
// without a weight, or with weight 0, gets no traffic, and the log notes it. One locality in each
// priority may be unnamed, and the cluster_name is optional.
//
// Alternatively, the file can be a list of clusters, each an envoy.config.cluster.v3.Cluster. The
// target names one of them:
//
//	clusters:
//	- name: checkout
//	  cluster_type:
//	    name: envoy.clusters.aggregate
//	    typed_config:
//	      "@type": type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig
//	      clusters: [near, far]
//	- name: near
//	  type: STATIC
//	  load_assignment:
//	    endpoints:
//	    - lb_endpoints:
//	      - endpoint: {address: {socket_address: {address: 192.0.2.1, port_value: 443}}}
//	- name: far
//	  type: LOGICAL_DNS
//	  load_assignment:
//	    endpoints:
//	    - lb_endpoints:
//	      - endpoint: {address: {socket_address: {address: far.example.com, port_value: 443}}}
//
// The priorities of an aggregate's clusters are priorities of the channel, in order (gRFC A37).
// Aggregates may contain aggregates, up to 16 levels deep and 256 clusters in total. If a cluster
// occurs twice, only the first position counts. For clusters of type STATIC, the endpoints are in
// the file. With STRICT_DNS, each name is resolved to all its addresses, each of which has the
// weight of the name, whereas LOGICAL_DNS clusters have just one name. The endpoints of EDS
// clusters come from the management servers of the xDS bootstrap (package eds). Names are refreshed
// as in a failover: target. An invalid cluster becomes a priority without endpoints, and the error
// names the path to the cluster and its position in the file. The other clusters stay in use. See
// docs/xds.md for the fields that are read.
//
// You can also use the files that Envoy's file subscription reads, with resources and their
// "@type". Messages of other types in a cluster, such as a typed_config, have no effect.
//
// If a file is larger than 16 MiB or has mistakes, it's rejected, and the line and column of each
// mistake are logged once. The last good endpoints stay in use, and we keep them for up to an hour
// while a channel is idle. If there aren't any, calls fail with the error. If a file exists but
// can't be read, e.g. because too many files are open, we try again every half second.
//
// We also reject a file or a cluster that doesn't list any endpoints, because that's usually a
// mistake of the program that writes the file. In a list, only the empty cluster is rejected. To
// take all endpoints out of use, set their health_status to DRAINING.
//
// Replace files by rename. A file that's being written in place may be incomplete, and have e.g.
// port 844 instead of 8443. That's why we only read a file when its size and time haven't changed
// for half a second, or for 2 seconds if it ends in the middle of a line or has become smaller.
// Until then, a new channel uses the content that other channels use. If a file keeps changing for
// 10 seconds, the log notes it.
//
// The channel's authority, which certificates are verified against, is NAME if it's set, otherwise
// CLUSTER if it's set, and otherwise the name of the file without its extension. It never comes
// from the content. If the certificates have another name, set NAME. See docs/options.md for the
// parameters of all targets.
package file
