// A JVM with everything that a checkpoint must carry: memory that the collector moves, threads, timers, connections, files.

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

public final class Soak {
    private static final int MIB = 1024 * 1024;
    private static final int PORT = 7000;
    private static final Path DIR = Path.of("/home/user/soak");

    private final Queue<String> problems = new ConcurrentLinkedQueue<>();
    private final AtomicLong ticks = new AtomicLong();
    private final List<byte[]> memory = new ArrayList<>();
    private final String identity = HexFormat.of().formatHex(kernelRandom(8));
    private final FileChannel appended;
    private final RandomAccessFile deleted;
    private final MappedByteBuffer mapped;
    private final Socket near;
    private volatile String mark = "";
    private long beforeNs = System.nanoTime();

    private Soak() throws IOException {
        byte[] seed = kernelRandom(8 * MIB);
        Random random = new Random(new java.math.BigInteger(1, java.util.Arrays.copyOf(seed, 8)).longValue());
        // Many small arrays rather than a few large ones: those the collector would leave where they are.
        for (int index = 0; index < 4096; index++) {
            byte[] chunk = new byte[8 * 1024];
            random.nextBytes(chunk);
            memory.add(chunk);
        }
        Files.createDirectories(DIR);
        Files.write(DIR.resolve("random"), seed);
        appended = FileChannel.open(DIR.resolve("appended"), StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        // Nobody can open this one again: it lives by its descriptor alone.
        deleted = new RandomAccessFile(DIR.resolve("deleted").toFile(), "rw");
        deleted.write(kernelRandom(MIB));
        Files.delete(DIR.resolve("deleted"));
        try (FileChannel file = FileChannel.open(
                DIR.resolve("mapped"), StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            mapped = file.map(FileChannel.MapMode.READ_WRITE, 0, 4 * MIB);
        }
        mapped.put(kernelRandom(4 * MIB));
        ServerSocket listener = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
        near = new Socket(InetAddress.getLoopbackAddress(), listener.getLocalPort());
        near.setSoTimeout(10_000);
        Socket far = listener.accept();
        daemon(() -> {
            far.getInputStream().transferTo(far.getOutputStream());
            problems.add("the connection within the sandbox was closed");
        });
        for (int count = 0; count < 4; count++) daemon(Soak::churn);
        Executors.newScheduledThreadPool(2).scheduleAtFixedRate(this::tick, 20, 20, TimeUnit.MILLISECONDS);
    }

    private interface Work {
        void run() throws Exception;
    }

    private void daemon(Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (Throwable error) {
                problems.add("a thread ended: " + error);
            }
        });
        thread.setDaemon(true);
        thread.start();
    }

    private void tick() {
        try {
            long nowNs = System.nanoTime();
            if (nowNs < beforeNs) problems.add("the monotonic clock went back from " + beforeNs + " to " + nowNs);
            beforeNs = nowNs;
            appended.write(StandardCharsets.US_ASCII.encode(ticks.get() + "\n"));
            ticks.incrementAndGet();
        } catch (Throwable error) {
            problems.add("the timer failed: " + error);
        }
    }

    private static void churn() throws InterruptedException {
        Object[] held = new Object[2_000];
        for (int number = 0; ; number = (number + 1) % 1_000_000) {
            held[number % held.length] = new byte[4 * 1024];
            if (number % 500 == 0) Thread.sleep(5);
        }
    }

    private static byte[] kernelRandom(int size) {
        try (FileInputStream file = new FileInputStream("/dev/urandom")) {
            return file.readNBytes(size);
        } catch (IOException error) {
            throw new java.io.UncheckedIOException(error);
        }
    }

    private String check() throws Exception {
        long before = ticks.get();
        ask();
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(10);
        while (ticks.get() == before && System.nanoTime() < deadline) Thread.sleep(10);
        if (ticks.get() == before) problems.add("the timer stands still");
        MessageDigest inMemory = MessageDigest.getInstance("SHA-256");
        synchronized (memory) {
            // New copies in the old ones' place: the hash goes through every collection there was.
            memory.replaceAll(byte[]::clone);
            memory.forEach(inMemory::update);
        }
        inMemory.update(mapped.duplicate().rewind());
        MessageDigest onDisk = MessageDigest.getInstance("SHA-256");
        onDisk.update(Files.readAllBytes(DIR.resolve("random")));
        onDisk.update(Files.readAllBytes(DIR.resolve("mapped")));
        byte[] unnamed = new byte[MIB];
        deleted.seek(0);
        deleted.readFully(unnamed);
        onDisk.update(unnamed);
        String text = Files.readString(DIR.resolve("appended"), StandardCharsets.US_ASCII);
        String[] lines = text.substring(0, text.lastIndexOf('\n') + 1).split("\n");
        for (int index = 0; index < lines.length; index++) {
            if (lines[index].equals(String.valueOf(index))) continue;
            problems.add("the appended file is not what was appended");
            break;
        }
        return "{\"identity\":%s,\"memory\":%s,\"files\":%s,\"ticks\":%d,\"clockMs\":%d,\"random\":%s,\"mark\":%s,\"problems\":[%s]}".formatted(
                quote(identity + " " + ProcessHandle.current().pid()),
                quote(HexFormat.of().formatHex(inMemory.digest())),
                quote(HexFormat.of().formatHex(onDisk.digest())),
                ticks.get(),
                System.currentTimeMillis(),
                quote(HexFormat.of().formatHex(kernelRandom(16))),
                quote(mark),
                String.join(",", problems.stream().map(Soak::quote).toList()));
    }

    private void ask() throws IOException {
        byte[] question = "are you there?".getBytes(StandardCharsets.US_ASCII);
        near.getOutputStream().write(question);
        byte[] answer = near.getInputStream().readNBytes(question.length);
        if (!java.util.Arrays.equals(question, answer)) problems.add("the connection within the sandbox lost bytes");
    }

    private static String quote(String text) {
        return '"' + text.replaceAll("[\\\\\"\\p{Cntrl}]", " ") + '"';
    }

    private void answer(HttpExchange exchange) throws IOException {
        String body;
        try {
            if (exchange.getRequestMethod().equals("POST")) {
                mark = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
                body = "{}";
            } else {
                body = check();
            }
        } catch (Exception error) {
            body = "{\"problems\":[" + quote("the check failed: " + error) + "]}";
        }
        byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(200, bytes.length);
        exchange.getResponseBody().write(bytes);
        exchange.close();
    }

    public static void main(String[] args) throws IOException {
        Soak soak = new Soak();
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), PORT), 0);
        server.createContext("/", soak::answer);
        server.setExecutor(Executors.newCachedThreadPool());
        server.start();
    }
}
