#include "mesh.h"

#include "device.h"
#include "device_work.h"
#include "helpers.h"
#include "process.h"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <algorithm>
#include <iterator>
#include <system_error>
#include <thread>

namespace meshcoll_torch
{

using std::chrono::milliseconds;
using Lock = std::unique_lock<std::mutex>;

/* Looks at what ends without telling. */
static constexpr milliseconds LOOK{2};
/* At calls on a GPU, whose end nobody may be waiting for. */
static constexpr milliseconds WATCH{100};
/* A group's ranks may take this long to meet where its operations have no time limit. */
static constexpr milliseconds MEETING{std::chrono::minutes(30)};
/* For news of an abort to end what waits. */
static constexpr milliseconds ABORTING{2000};

namespace
{
struct All {
    std::mutex mutex;
    std::vector<std::weak_ptr<Mesh>> meshes;
    Clock::time_point end; /* of what groups wait that end together */
};
} // namespace

/* Has a group begun to end, and nothing been done since? */
static std::atomic<bool> is_ending{false};

static void goes_on()
{
    if (is_ending.load(std::memory_order_relaxed))
        is_ending = false;
}

Mesh::Mesh(Setup setup)
    : setup_(std::move(setup)), pid_(getpid()),
      exchange_(setup_.store, setup_.rank, setup_.size, setup_.tag,
                setup_.timeout > milliseconds::zero() ? setup_.timeout : MEETING),
      timeout_(setup_.timeout)
{
}

std::shared_ptr<Mesh> Mesh::open(Setup setup)
{
    const std::shared_ptr<Mesh> mesh(new Mesh(std::move(setup)));
    const std::string why = mesh->start_thread(&Mesh::make);
    if (!why.empty()) {
        mesh->exchange_.tell_failure(why);
        TORCH_CHECK(false, "meshcoll: ", why);
    }
    goes_on();
    All &all = of_this_process<All>();
    const Lock lock(all.mutex);
    std::erase_if(all.meshes, [](const auto &m) { return m.expired(); });
    all.meshes.push_back(mesh);
    return mesh;
}

std::shared_ptr<Mesh> Mesh::sibling(int depth) const
{
    Setup setup = setup_;
    setup.store = c10::make_intrusive<c10d::PrefixStore>(
        "meshcoll/callbacks/" + std::to_string(depth), setup_.store);
    setup.timeout = timeout_.load();
    setup.name +=
        (setup.name.empty() ? "" : ", ") + std::string("calls that callbacks of futures make");
    return open(std::move(setup));
}

/* "", or why there is none. */
std::string Mesh::start_thread(void (Mesh::*run)())
{
    try {
        std::thread([mesh = shared_from_this(), run] { (mesh.get()->*run)(); }).detach();
        return "";
    } catch (const std::system_error &e) {
        return no_thread("for a process group", e);
    }
}

bool Mesh::is_ours() const
{
    return getpid() == pid_; /* a forked child has no thread of it */
}

void Mesh::check_ours() const
{
    TORCH_CHECK(is_ours(), "meshcoll: a forked process cannot use the process group of its parent");
}

/* Operations ----------------------------------------------------------------------------------- */

void Mesh::post(const c10::intrusive_ptr<Work> &work)
{
    check_ours();
    goes_on();
    Lock lock(mutex_);
    if (state_ == State::OPEN && !closing_) {
        work->start(mesh_);
    } else if (state_ == State::OPENING && !closing_) {
        queue_.push_back(work);
    } else {
        const std::string why = why_not();
        lock.unlock();
        work->refuse(why);
    }
}

std::string Mesh::why_not() const
{
    return state_ == State::FAILED ? why_ : "the process group was destroyed";
}

bool Mesh::is_open()
{
    const Lock lock(mutex_);
    return state_ == State::OPEN;
}

bool Mesh::enter()
{
    waiters_++;
    if (!shut_)
        return true;
    waiters_--;
    return false;
}

void Mesh::park(std::vector<at::Tensor> tensors)
{
    const Lock lock(parked_mutex_);
    std::move(tensors.begin(), tensors.end(), std::back_inserter(parked_));
}

void Mesh::failed(int status)
{
    int none = MESHCOLL_OK;
    failure_.compare_exchange_strong(none, status);
}

/* On a GPU ------------------------------------------------------------------------------------- */

const SideStream &Mesh::side_stream(at::Device device)
{
    const Lock lock(side_mutex_);
    if (!side_) {
        const c10::Stream stream = other_stream(device);
        side_ = SideStream{stream, handle_of(stream)};
    }
    TORCH_CHECK_VALUE(device == side_->stream.device(), "meshcoll: this rank has used ",
                      side_->stream.device(), " in the process group before, and now ", device,
                      ": a rank has one GPU (torch.cuda.set_device)");
    return *side_;
}

void Mesh::post_on_device(const c10::intrusive_ptr<DeviceWork> &work)
{
    check_ours();
    goes_on();
    side_stream(work->device());
    meshcoll_t *mesh = nullptr;
    std::string why;
    {
        Lock lock(mutex_);
        told_.wait(lock, [this] { return state_ != State::OPENING || closing_; });
        why = state_ == State::OPEN && !closing_ ? watch_calls() : why_not();
        if (why.empty()) {
            mesh = mesh_;
            began();
        }
    }
    if (!mesh) {
        work->refuse(why);
        return;
    }
    const Lock lock(start_mutex_);
    work->start(mesh);
    if (work->flight() && !work->is_captured())
        watch(work);
    else
        ended();
}

/* With the lock held. From the first call on, a thread looks at them until the mesh is closed. */
std::string Mesh::watch_calls()
{
    watches_ = true;
    const std::string why = has_thread_ ? "" : start_thread(&Mesh::keep);
    has_thread_ = why.empty();
    return why;
}

struct Mesh::Watched {
    std::shared_ptr<Flight> flight;
    c10::weak_intrusive_ptr<DeviceWork> work; /* the program may have dropped it */
};

bool Mesh::has_flights()
{
    const Lock lock(flights_mutex_);
    return !flights_.empty();
}

void Mesh::watch(const c10::intrusive_ptr<DeviceWork> &work)
{
    bool is_first;
    {
        const Lock lock(flights_mutex_);
        is_first = flights_.empty();
        flights_.push_back(std::make_shared<Watched>(
            Watched{work->flight(), c10::weak_intrusive_ptr<DeviceWork>(work)}));
    }
    if (is_first) {
        const Lock lock(mutex_);
        told_.notify_all();
    }
}

int Mesh::device_status(std::string &sentence)
{
    const Lock use(use_mutex_);
    meshcoll_t *mesh;
    {
        const Lock lock(mutex_);
        mesh = mesh_;
    }
    const int status = mesh ? meshcoll_async_error(mesh) : MESHCOLL_OK;
    if (status < 0) {
        sentence = meshcoll_last_error();
        failed(status);
    }
    return status;
}

static bool has(const auto &list, const auto &item)
{
    return std::find(list.begin(), list.end(), item) != list.end();
}

void Mesh::remove_flights(const Flights &over)
{
    const Lock lock(flights_mutex_);
    std::erase_if(flights_, [&over](const auto &flight) { return has(over, flight); });
}

/* First which have ended, then what the mesh says: it is right about these. */
void Mesh::look_at_flights()
{
    static thread_local const bool may_ask = (allow_questions_during_captures(), true);
    Flights flights, over;
    std::string sentence;
    (void)may_ask;
    {
        const Lock lock(flights_mutex_);
        flights = flights_;
    }
    std::copy_if(flights.begin(), flights.end(), std::back_inserter(over),
                 [](const auto &w) { return w->flight->is_over(); });
    const int status = device_status(sentence);
    for (const auto &w : flights) {
        const c10::intrusive_ptr<DeviceWork> work = w->work.lock();
        if (work && (status < 0 || has(over, w)))
            work->landed(status, sentence);
        else if (work && work->is_late())
            abort(work->lateness());
    }
    remove_flights(over);
    running_ -= static_cast<int>(over.size());
}

/* Works of a program that has its own pace are found over by itself; this is for those that it dropped, and
 * for what fails. */
void Mesh::await_closing()
{
    Lock lock(mutex_);
    while (!closing_) {
        told_.wait(lock, [this] { return closing_ || has_flights(); });
        if (!told_.wait_for(lock, WATCH, [this] { return closing_; })) {
            lock.unlock();
            look_at_flights();
            lock.lock();
        }
    }
}

/* Ways in from outside ------------------------------------------------------------------------- */

void Mesh::set_timeout(milliseconds timeout)
{
    check_ours();
    const Lock lock(mutex_);
    timeout_ = timeout;
    if (mesh_)
        meshcoll_set_timeout(mesh_, static_cast<double>(timeout.count()) / 1e3);
}

/* Making and closing --------------------------------------------------------------------------- */

int Mesh::create(meshcoll_t **mesh)
{
    /* in integers: a text of a double has the decimal point of the program's locale */
    const auto ms = setup_.timeout.count();
    const std::string seconds =
        std::to_string(ms / 1000) + "." + std::to_string(1000 + ms % 1000).substr(1);
    meshcoll_params_t params = {};
    params.size = sizeof params;
    params.mesh = setup_.mesh ? setup_.mesh->c_str() : nullptr;
    params.order = setup_.mesh ? "" : nullptr; /* MESHCOLL_ORDER is of all processes */
    params.progress = "thread"; /* torch computes while messages move */
    params.timeout = seconds.c_str();
    const meshcoll_oob_t oob = {setup_.rank, setup_.size, &exchange_, Exchange::allgather};
    exchange_.open_own_connection();
    const int status = meshcoll_create_oob(&oob, &params, mesh);
    if (status == MESHCOLL_OK)
        exchange_.has_read();
    exchange_.close_own_connection();
    return status;
}

/* What was posted meanwhile starts in its order, before anything that is posted later. */
void Mesh::opened(int status, meshcoll_t *mesh)
{
    const std::string sentence = status < 0 ? meshcoll_last_error() : "";
    std::deque<c10::intrusive_ptr<Work>> refused;
    {
        const Lock lock(mutex_);
        if (status < 0) {
            state_ = State::FAILED;
            why_ = "its mesh could not be made: " +
                   (exchange_.why().empty() ? sentence : exchange_.why());
            failed(status);
            refused.swap(queue_);
        } else {
            state_ = State::OPEN;
            mesh_ = mesh;
            if (timeout_.load() != setup_.timeout)
                meshcoll_set_timeout(mesh, static_cast<double>(timeout_.load().count()) / 1e3);
            for (const auto &work : queue_)
                work->start(mesh);
            queue_.clear();
        }
    }
    told_.notify_all(); /* those who wait for it */
    if (status < 0)
        exchange_.tell_failure(exchange_.why().empty() ? sentence : exchange_.why());
    for (const auto &work : refused)
        work->refuse(why_);
}

/* Collectives and sends come to an end by themselves, at the latest by their time limit. A receive
 * that nothing matches does not. */
void Mesh::drain()
{
    while (running_ > 0) {
        if (has_flights())
            look_at_flights();
        std::this_thread::sleep_for(LOOK);
    }
}

void Mesh::destroy()
{
    meshcoll_t *const mesh = mesh_;
    drain();
    shut_ = true;
    if (waiters_ > 0)
        meshcoll_abort(mesh, "its process group was destroyed while a thread waited in it");
    while (waiters_ > 0)
        std::this_thread::sleep_for(LOOK);
    {
        const Lock use(use_mutex_);
        const Lock lock(mutex_);
        state_ = State::CLOSED;
        mesh_ = nullptr;
    }
    meshcoll_destroy(mesh);
}

void Mesh::make()
{
    meshcoll_t *mesh = nullptr;
    const int status = create(&mesh);
    opened(status, mesh);
    keep();
}

/* Without calls on a GPU nothing is to be done until it is closed. */
void Mesh::keep()
{
    {
        const Lock lock(mutex_);
        has_thread_ = watches_ || closing_;
        if (!has_thread_)
            return;
    }
    await_closing();
    finish();
}

void Mesh::finish()
{
    if (is_open()) {
        destroy();
        exchange_.forget();
    }
    {
        const Lock lock(parked_mutex_);
        parked_.clear();
    }
    const Lock lock(mutex_);
    closed_ = true;
    told_.notify_all();
}

/* Ending --------------------------------------------------------------------------------------- */

void Mesh::abort(const std::string &why)
{
    if (!is_ours())
        return;
    const Lock lock(mutex_);
    exchange_.give_up();
    if (mesh_)
        meshcoll_abort(mesh_, why.c_str());
}

void Mesh::close()
{
    if (!is_ours())
        return;
    Lock lock(mutex_);
    closing_ = true;
    told_.notify_all();
    if (has_thread_)
        return;
    has_thread_ = true;
    if (start_thread(&Mesh::finish).empty())
        return;
    lock.unlock();
    finish();
}

bool Mesh::await_closed(milliseconds patience)
{
    if (!is_ours())
        return true;
    Lock lock(mutex_);
    return told_.wait_for(lock, patience, [this] { return closed_; });
}

static std::vector<std::shared_ptr<Mesh>> open_meshes()
{
    std::vector<std::shared_ptr<Mesh>> open;
    All &all = of_this_process<All>();
    const Lock lock(all.mutex);
    for (const auto &m : all.meshes)
        if (auto mesh = m.lock())
            open.push_back(std::move(mesh));
    return open;
}

Clock::time_point Mesh::end_of_waiting(milliseconds patience)
{
    All &all = of_this_process<All>();
    const Lock lock(all.mutex);
    if (!is_ending.exchange(true))
        all.end = deadline(patience);
    return all.end;
}

bool Mesh::await_all(const std::vector<std::shared_ptr<Mesh>> &meshes, Clock::time_point end)
{
    bool closed = true;
    for (const auto &mesh : meshes) {
        const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now());
        closed = mesh->await_closed(std::max(left, milliseconds(0))) && closed;
    }
    return closed;
}

void Mesh::close_all(milliseconds patience)
{
    const auto open = open_meshes();
    for (const auto &mesh : open)
        mesh->close();
    if (!await_all(open, deadline(patience)))
        abort_all("its process ends");
}

void Mesh::abort_all(const std::string &why)
{
    const auto open = open_meshes();
    for (const auto &mesh : open)
        mesh->abort(why);
    for (const auto &mesh : open)
        mesh->close();
    await_all(open, deadline(ABORTING));
}

} // namespace meshcoll_torch
