//! Hosts of a cluster that gossips: network namespaces with an address each on one bridge, so that a host can be cut off from
//! others; where that is not allowed (root, `ip`), loopback addresses of their own, which can't.

use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::Arc;

/// The network of one cluster. Removed when dropped.
pub(super) struct Network {
    /// Of namespaces; none where hosts are loopback addresses.
    name: Option<String>,
    /// The first three bytes of all addresses.
    prefix: [u8; 3],
}

/// A host with an address of its own.
#[derive(Clone)]
pub struct Host {
    network: Arc<Network>,
    number: u8,
}

impl Network {
    /// A network with `count` hosts, where there are to be any.
    pub(super) fn create_if(count: usize) -> Vec<Host> {
        if count == 0 { Vec::new() } else { Self::create(count) }
    }

    /// A network with `count` hosts.
    fn create(count: usize) -> Vec<Host> {
        let [a, b, ..] = rand::random::<u64>().to_le_bytes();
        let name = format!("ap{:08x}", rand::random::<u32>());
        let mut network = Self { name: Some(name.clone()), prefix: [10, a, b] };
        let is_made = run(&["link", "add", &name, "type", "bridge"])
            && run(&["addr", "add", &format!("{}/24", network.address(1)), "dev", &name])
            && run(&["link", "set", &name, "up"])
            && (0..count).all(|host| network.add_host(&name, host as u8 + 2));
        if !is_made {
            drop(network);
            network = Self { name: None, prefix: [127, a | 1, b] };
        }
        let network = Arc::new(network);
        (0..count).map(|host| Host { network: Arc::clone(&network), number: host as u8 + 2 }).collect()
    }

    fn address(&self, number: u8) -> Ipv4Addr {
        let [a, b, c] = self.prefix;
        Ipv4Addr::new(a, b, c, number)
    }

    fn add_host(&self, name: &str, number: u8) -> bool {
        let (space, inside, outside) =
            (format!("{name}-{number}"), format!("{name}i{number}"), format!("{name}o{number}"));
        run(&["netns", "add", &space])
            && run(&["link", "add", &outside, "type", "veth", "peer", "name", &inside, "netns", &space])
            && run(&["link", "set", &outside, "master", name, "up"])
            && run(&["-n", &space, "addr", "add", &format!("{}/24", self.address(number)), "dev", &inside])
            && run(&["-n", &space, "link", "set", &inside, "up"])
            && run(&["-n", &space, "link", "set", "lo", "up"])
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let Some(name) = &self.name else { return };
        for number in 2..=u8::MAX {
            if !run(&["netns", "del", &format!("{name}-{number}")]) {
                break;
            }
        }
        run(&["link", "del", name]);
    }
}

impl Host {
    /// Its address.
    pub fn address(&self) -> Ipv4Addr {
        self.network.address(self.number)
    }

    /// Whether it can be cut off from others.
    pub fn can_be_cut_off(&self) -> bool {
        self.network.name.is_some()
    }

    /// A command that runs on this host.
    pub fn command(&self, program: &std::path::Path) -> Command {
        match self.space() {
            Some(space) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", &space]).arg(program);
                command
            }
            None => Command::new(program),
        }
    }

    /// Sends nothing to another host any more. What that one sends arrives.
    pub fn cut_off_from(&self, other: &Host) {
        self.route("add", other);
    }

    /// Sends to another host again.
    pub fn reach_again(&self, other: &Host) {
        self.route("del", other);
    }

    fn route(&self, verb: &str, other: &Host) {
        let space = self.space().expect("hosts that are loopback addresses can't be cut off");
        let done = run(&["-n", &space, "route", verb, "blackhole", &format!("{}/32", other.address())]);
        assert!(done, "{verb} a route from {space} to {}", other.address());
    }

    fn space(&self) -> Option<String> {
        self.network.name.as_ref().map(|name| format!("{name}-{}", self.number))
    }
}

/// Runs `ip`; says whether it did what it was told.
fn run(args: &[&str]) -> bool {
    Command::new("ip").args(args).output().is_ok_and(|output| output.status.success())
}
