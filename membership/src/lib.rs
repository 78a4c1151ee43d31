//! Who is in a cluster, what each member serves and how far it is, by gossip.
