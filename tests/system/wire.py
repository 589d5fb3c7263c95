"""Hosts in network namespaces, joined by a wire that loses, delays, holds back and cuts packets as a test says.

The wire is this process: each host has a TUN device, and what one sends is read here and written to the other. So it needs no
packet scheduler in the kernel, and a seed gives the same losses. Namespaces live as long as their holder process, which ends
with this one: nothing is left behind, whatever happens.
"""

import ctypes
import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import threading
import time
import unittest

CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
MTU = 1500


def run(*command):
    subprocess.run(command, check=True, capture_output=True)


def leave_network():
    """Puts this process into a network namespace of its own, so that hosts and devices are nobody else's. Skips where that is not allowed."""
    if not os.path.exists("/dev/net/tun"):
        raise unittest.SkipTest("there is no /dev/net/tun: the kernel has no TUN devices, or this container may not use them")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        raise unittest.SkipTest("network namespaces are not permitted here: " + os.strerror(ctypes.get_errno()))
    try:
        run("ip", "link", "set", "lo", "up")
        os.close(tun("probe"))
    except (OSError, subprocess.CalledProcessError) as why:
        raise unittest.SkipTest(f"network devices are not permitted here: {why}") from why


def tun(name):
    """A device, and the end of it that is read and written here."""
    end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.ioctl(end, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    except OSError:
        os.close(end)
        raise
    return end


class Host:
    """A network namespace with one device."""

    def __init__(self, address):
        self.address = address
        # Ends when this process does, since its input ends then.
        self.holder = subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        self.prefix = ["nsenter", f"--net=/proc/{self.holder.pid}/ns/net", "--"]
        own = os.readlink("/proc/self/ns/net")
        while os.readlink(f"/proc/{self.holder.pid}/ns/net") == own:
            time.sleep(0.005)
        name = "h" + address.rsplit(".", 1)[1]
        self.end = tun(name)
        run("ip", "link", "set", name, "netns", str(self.holder.pid))
        for command in (["addr", "add", address + "/24", "dev", name], ["link", "set", name, "mtu", str(MTU), "up"],
                        ["link", "set", "lo", "up"]):
            run(*self.prefix, "ip", *command)

    def close(self):
        os.close(self.end)
        self.holder.stdin.close()
        self.holder.wait()


class Rule:
    """What happens to packets of one direction."""

    def __init__(self, loss=0.0, delay=0.0, jitter=0.0, cut=False, hold=False):
        self.loss = loss      # the part that is lost
        self.delay = delay    # seconds
        self.jitter = jitter  # more seconds, up to so many: packets overtake each other
        self.cut = cut        # nothing arrives, and nobody is told
        self.hold = hold      # nothing arrives until the rule changes, and then all of it, in any order


class Wire:
    """Hosts, this process among them, and what lies between."""

    HELD_AT_MOST = 4096

    def __init__(self, network, hosts, seed):
        self.random = random.Random(seed)
        self.hosts = {}
        self.rules = {}
        self.held = []
        self.lock = threading.Lock()
        self.counts = {"passed": 0, "lost": 0, "held": 0}
        self.awake, self.waker = os.pipe()
        own = network + ".254"
        self.own = tun("own")
        for command in (["addr", "add", own + "/24", "dev", "own"], ["link", "set", "own", "mtu", str(MTU), "up"]):
            run("ip", *command)
        self.ends = {own: self.own}
        for number, name in enumerate(hosts, 1):
            host = Host(f"{network}.{number}")
            self.hosts[name] = host
            self.ends[host.address] = host.end
        self.going = True
        self.thread = threading.Thread(target=self.forward, daemon=True)
        self.thread.start()

    def close(self):
        self.going = False
        os.write(self.waker, b"x")
        self.thread.join()
        for host in self.hosts.values():
            host.close()
        for end in (self.own, self.awake, self.waker):
            os.close(end)

    def between(self, source, target, rule):
        """Sets what happens to packets from one host to another; None: they arrive."""
        with self.lock:
            key = (self.hosts[source].address, self.hosts[target].address)
            self.rules[key] = rule
            if rule is None or not rule.hold:
                released = [packet for packet in self.held if packet[0] == key]
                self.held = [packet for packet in self.held if packet[0] != key]
                self.random.shuffle(released)
                for _, target_address, data in released:
                    os.write(self.ends[target_address], data)
        os.write(self.waker, b"x")

    def both(self, one, other, rule):
        self.between(one, other, rule)
        self.between(other, one, rule)

    def heal(self):
        for source in self.hosts:
            for target in self.hosts:
                if source != target:
                    self.between(source, target, None)

    def forward(self):
        waiting, number = [], 0
        readable = [*self.ends.values(), self.awake]
        while self.going:
            until = waiting[0][0] - time.monotonic() if waiting else None
            ready, _, _ = select.select(readable, [], [], None if until is None else max(0.0, until))
            now = time.monotonic()
            for end in ready:
                if end == self.awake:
                    os.read(end, 4096)
                    continue
                for data in self.packets(end):
                    number += 1
                    at = self.arrival(data, now)
                    if at is not None:
                        heapq.heappush(waiting, (at, number, data))
            while waiting and waiting[0][0] <= time.monotonic():
                self.write(heapq.heappop(waiting)[2])

    @staticmethod
    def packets(end):
        for _ in range(64):
            try:
                data = os.read(end, 65536)
            except BlockingIOError:
                return
            except OSError:
                return
            if data and data[0] >> 4 == 4:  # IPv4; the rest is neighbours looking for routers
                yield data

    def arrival(self, data, now):
        """When a packet comes to its target; None: never, or not yet."""
        key = (".".join(map(str, data[12:16])), ".".join(map(str, data[16:20])))
        with self.lock:
            rule = self.rules.get(key)
            if rule is None:
                self.counts["passed"] += 1
                return now
            if rule.hold and len(self.held) < self.HELD_AT_MOST:
                self.held.append((key, key[1], data))
                self.counts["held"] += 1
                return None
            if rule.hold or rule.cut or self.random.random() < rule.loss:
                self.counts["lost"] += 1
                return None
            self.counts["passed"] += 1
            return now + rule.delay + self.random.random() * rule.jitter

    def write(self, data):
        end = self.ends.get(".".join(map(str, data[16:20])))
        if end is not None:
            try:
                os.write(end, data)
            except OSError:  # the device's queue is full, or its host is gone: so is the packet
                self.counts["lost"] += 1
